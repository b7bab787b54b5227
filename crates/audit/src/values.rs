//! Values as the formats write them: durations, sizes, commands.

use std::time::Duration;

use containerpilot_config::duration;

/// A duration of Nomad, or of `sleep`: `1m30s`.
pub(crate) fn time(text: &str) -> Option<Duration> {
    let nanoseconds = duration::parse(text.trim()).ok()?;
    u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
}

/// A whole number of seconds as Kubernetes reads it: `60`, also `60.0`. The error says what is wrong.
pub(crate) fn whole(text: &str, is_number: bool) -> Result<Option<i64>, &'static str> {
    if let (true, Ok(number)) = (is_number, text.parse()) {
        return Ok(Some(number));
    }
    match text.parse::<f64>() {
        _ if !is_number => Err("is a text, not a number"),
        Ok(number) if number.fract() != 0.0 => Err("is not a whole number"),
        #[expect(clippy::cast_possible_truncation, reason = "it has no fraction, and is clamped")]
        Ok(number) => Ok(Some(number as i64)),
        // Such as 0x1e.
        Err(_) => Ok(None),
    }
}

/// A number with a unit, in bytes. Without a unit of the list it is a number of bytes.
fn size(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let text = text.trim();
    let unit = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = unit.unwrap_or((text, 1.0));
    let number: f64 =
        number.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)?;
    // The fraction of a byte is cut off.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
    Some((number * factor).min(9e18) as u64)
}

const KI: f64 = 1024.0;

/// A quantity of Kubernetes: `64Mi`, `1G`, `128974848`, `1e9`.
pub(crate) fn quantity(text: &str) -> Option<u64> {
    let units = [
        ("Ki", KI),
        ("Mi", KI * KI),
        ("Gi", KI * KI * KI),
        ("Ti", KI * KI * KI * KI),
        ("Pi", KI * KI * KI * KI * KI),
        ("Ei", KI * KI * KI * KI * KI * KI),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
    ];
    size(text, &units)
}

/// A size of Compose: `512m`, `1gb`. All units are powers of 1024.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let text = text.strip_suffix('b').unwrap_or(&text);
    size(text, &[("k", KI), ("m", KI * KI), ("g", KI * KI * KI), ("t", KI * KI * KI * KI)])
}

/// A size in the largest unit that fits.
pub(crate) fn fmt_size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| bytes >= 1 << shift) {
        Some((name, shift)) if bytes.is_multiple_of(1 << shift) => format!("{} {name}", bytes >> shift),
        Some((name, shift)) => {
            let tenths = (bytes >> (shift - 10)) * 10 / 1024;
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

/// The last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the script of `sh -c SCRIPT`.
pub(crate) fn script(words: &[String]) -> Option<&str> {
    let [shell, flags, script, ..] = words else { return None };
    let is_shell = matches!(base_name(shell), "sh" | "bash" | "ash" | "dash" | "busybox");
    let runs = flags.starts_with('-') && flags.ends_with('c');
    (is_shell && runs).then_some(script)
}

/// The commands that a command runs: itself, or those of its shell script.
pub(crate) fn commands(words: &[String]) -> Vec<Vec<String>> {
    match script(words) {
        Some(script) => script_commands(script),
        None => vec![words.to_vec()],
    }
}

/// The commands of a shell script, without `exec` and variables before them. Good enough to recognise programs.
pub(crate) fn script_commands(script: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    let mut push = |word: &mut String, next: bool| {
        if !word.is_empty()
            && let Some(last) = all.last_mut()
        {
            last.push(std::mem::take(word));
        }
        if next {
            all.push(Vec::new());
        }
    };
    for c in script.chars() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ';' | '&' | '|' | '\n' | '(' | ')') => push(&mut word, true),
            (None, c) if c.is_whitespace() => push(&mut word, false),
            _ => word.push(c),
        }
    }
    push(&mut word, false);
    let prefix = |word: &String| {
        let is_variable = word.split_once('=').is_some_and(|(name, _)| !name.contains(['/', '-']));
        matches!(word.as_str(), "exec" | "then" | "do" | "!" | "if" | "while" | "until") || is_variable
    };
    let commands = all.into_iter().map(|words: Vec<String>| words.into_iter().skip_while(prefix).collect());
    commands.filter(|words: &Vec<String>| !words.is_empty()).collect()
}

/// The arguments of each `containerpilot` that a command runs.
pub(crate) fn containerpilot_calls(words: &[String]) -> Vec<Vec<String>> {
    let calls = commands(words).into_iter().filter_map(|words| {
        let (program, arguments) = words.split_first()?;
        (base_name(program) == "containerpilot").then(|| arguments.to_vec())
    });
    calls.collect()
}

/// How long a command sleeps, if that is all that it does for long.
pub(crate) fn sleep_time(words: &[String]) -> Option<Duration> {
    let times = commands(words).into_iter().filter_map(|words| match words.as_slice() {
        [program, time, ..] if base_name(program) == "sleep" => time
            .parse::<f64>()
            .ok()
            .map_or_else(|| self::time(time), |seconds| Duration::try_from_secs_f64(seconds).ok()),
        _ => None,
    });
    times.reduce(|all, time| all + time)
}

/// Splits a command line into words, as Compose does: with quotes and without a shell.
pub(crate) fn split(line: &str) -> Vec<String> {
    shlex::split(line).unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect())
}

/// The words that run a line in a shell.
pub(crate) fn shell(line: &str) -> Vec<String> {
    vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()]
}

/// Returns true if root cannot switch users with these capabilities.
pub(crate) fn drops_setuid(drop: &[String], add: &[String]) -> bool {
    let has = |list: &[String], name: &str| {
        list.iter().any(|one| one.trim_start_matches("CAP_").eq_ignore_ascii_case(name))
    };
    let lost = |name: &str| (has(drop, "ALL") || has(drop, name)) && !has(add, name) && !has(add, "ALL");
    lost("SETUID") || lost("SETGID")
}

/// A path with its first slash and without its query.
pub(crate) fn path_of(text: &str) -> String {
    let path = text.split(['?', '#']).next().unwrap_or_default();
    format!("/{}", path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x14_sizes_and_times_are_read_as_each_system_writes_them() {
        let quantities = ["64Mi", "1G", "128974848", "1e9", "1.5Gi", "500m", "x", "-1", ""].map(quantity);
        let mi = 1 << 20;
        let expected = [Some(64 * mi), Some(1_000_000_000), Some(128_974_848), Some(1_000_000_000)];
        assert_eq!(quantities[..4], expected);
        assert_eq!(quantities[4..], [Some(1536 * mi), Some(0), None, None, None]);
        assert_eq!(
            ["512m", "1gb", "300", "2K"].map(bytes),
            [Some(512 * mi), Some(1 << 30), Some(300), Some(2048)]
        );
        assert_eq!(
            [64 * mi, 1 << 30, 1000, 1536 * mi].map(fmt_size),
            ["64 MiB", "1 GiB", "1000 bytes", "1.5 GiB"]
        );
        let numbers = [("60", true), ("-5", true), ("60.0", true), ("6e1", true), ("0x1e", true)];
        assert_eq!(
            numbers.map(|(text, is_number)| whole(text, is_number)),
            [Ok(Some(60)), Ok(Some(-5)), Ok(Some(60)), Ok(Some(60)), Ok(None)]
        );
        assert!(whole("60.5", true).is_err() && whole("60", false).is_err() && whole("x", false).is_err());
        assert_eq!(
            ["15s", "1m30s", "x"].map(time),
            [Some(Duration::from_secs(15)), Some(Duration::from_secs(90)), None]
        );
    }

    #[test]
    fn x14_programs_are_recognised_in_shell_scripts() {
        let words = |line: &[&str]| line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let calls = |line: &[&str]| containerpilot_calls(&words(line));
        assert_eq!(calls(&["/bin/containerpilot", "health", "web"]), [["health", "web"]]);
        assert_eq!(calls(&["sh", "-c", "A=1 exec containerpilot 'health' || exit 1"]), [["health"]]);
        assert_eq!(calls(&["sh", "-c", "curl -f localhost:8080"]), [] as [Vec<String>; 0]);
        assert_eq!(sleep_time(&words(&["sleep", "5"])), Some(Duration::from_secs(5)));
        assert_eq!(
            sleep_time(&words(&["/bin/sh", "-c", "sleep 5; nginx -s quit; sleep 1.5"])),
            Some(Duration::from_millis(6_500))
        );
        assert_eq!(sleep_time(&words(&["sleep", "inf"])), None);
    }
}
