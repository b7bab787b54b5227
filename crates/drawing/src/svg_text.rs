//! Text and grids in the SVG output of `graph` and `simulate`.

use containerpilot_config::columns;

/// Escapes a text for XML. Characters that XML does not allow become U+FFFD.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The width of a text in average characters of a sans-serif font: as on a terminal, but arrows, dashes and ellipses count
/// twice.
pub(crate) fn width(text: &str) -> i64 {
    let wide = text.chars().filter(|c| ('\u{2010}'..='\u{2bff}').contains(c)).count();
    i64::try_from(columns::width(text) + wide).unwrap_or(i64::MAX)
}

/// The nanoseconds between two lines of a grid: a round number that gives about ten lines.
pub(crate) fn grid_step(end: u64) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let round =
        [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400];
    let wanted = end / 10;
    let below = [SECOND / 1_000, SECOND / 100, SECOND / 20, SECOND / 10, SECOND / 5, SECOND / 2];
    let all = below.into_iter().chain(round.into_iter().map(|step| step * SECOND));
    all.into_iter().find(|step| *step >= wanted).unwrap_or(wanted.max(1))
}

/// Where the texts of a picture are, as left, top, right and bottom, with the text.
#[cfg(test)]
pub(crate) fn text_boxes(picture: &str) -> Vec<([f64; 4], String)> {
    let attribute = |tag: &str, name: &str| {
        let value = tag.split(&format!(" {name}=\"")).nth(1)?;
        value.split('"').next().map(str::to_owned)
    };
    let mut boxes = Vec::new();
    for part in picture.split("<text").skip(1) {
        let (tag, rest) = part.split_once('>').unwrap();
        let text = rest
            .split("</text>")
            .next()
            .unwrap()
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        let class = attribute(tag, "class").unwrap_or_default();
        let classes: Vec<&str> = class.split(' ').collect();
        let has = |names: &[&str]| names.iter().any(|name| classes.contains(name));
        let size = if has(&["small", "note", "label"]) { 11.0 } else { 14.0 };
        let number = |name: &str| attribute(tag, name).unwrap().parse::<f64>().unwrap();
        let (x, y) = (number("x"), number("y"));
        // An average character of a sans-serif font.
        let long = width(&text) as f64 * size * 0.54;
        let anchored = |place: &str| attribute(tag, "text-anchor").as_deref() == Some(place);
        let left = if has(&["right"]) || anchored("end") {
            x - long
        } else if has(&["middle"]) || anchored("middle") {
            x - long / 2.0
        } else {
            x
        };
        boxes.push(([left, y - size * 0.75, left + long, y + size * 0.2], text));
    }
    boxes
}

/// No text is on top of another one, or outside the picture.
#[cfg(test)]
pub(crate) fn assert_legible(picture: &str) {
    let size = |name: &str| {
        let value = picture.split(&format!(" {name}=\"")).nth(1).unwrap();
        value.split('"').next().unwrap().parse::<f64>().unwrap()
    };
    let (wide, high) = (size("width"), size("height"));
    let boxes = text_boxes(picture);
    assert!(!boxes.is_empty());
    for (nth, ([left, top, right, bottom], text)) in boxes.iter().enumerate() {
        assert!(
            *left >= 0.0 && *top >= 0.0 && *right <= wide && *bottom <= high,
            "`{text}` is outside: {left} {top} {right} {bottom} of {wide} {high}"
        );
        for ([other_left, other_top, other_right, other_bottom], other) in boxes.iter().skip(nth + 1) {
            let apart =
                right <= other_left || other_right <= left || bottom <= other_top || other_bottom <= top;
            assert!(
                apart,
                "`{text}` at {left:.0},{top:.0} and `{other}` at {other_left:.0},{other_top:.0} overlap"
            );
        }
    }
}
