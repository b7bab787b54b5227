//! Where the keys of a loaded configuration are, for messages about its plan.

use crate::diagnostics::{FileId, Place, SourceFile};
use crate::json5::{self, Member, Value};

/// The place of a key in the files of a configuration. A part of the path that meets a list is the `name` of one of its objects:
/// `["jobs", "web", "drain"]`. Of a path whose end is not written, it is the place of the part that is; `None` if there is no part.
#[must_use]
pub fn place_of(files: &[SourceFile], path: &[&str]) -> Option<Place> {
    let found = files.iter().enumerate().filter_map(|(index, file)| {
        let Some(Value::Object(members)) = json5::parse(&file.rendered).root.map(|root| root.value) else {
            return None;
        };
        let (depth, span) = find(&members, path)?;
        Some((depth, Place::rendered(FileId::at(index), span)))
    });
    // Of several files, the one that has most of the path.
    found.max_by_key(|(depth, _)| *depth).map(|(_, place)| place)
}

/// How many parts of the path are written, and the range of the last of them.
fn find(members: &[Member], path: &[&str]) -> Option<(usize, crate::span::Span)> {
    let (key, rest) = path.split_first()?;
    // As in the decoder, the last one wins, and the case of a key does not matter.
    let member = members.iter().rfind(|member| member.key.eq_ignore_ascii_case(key))?;
    let here = (1, member.key_span);
    let deeper = match &member.value.value {
        Value::Object(members) => find(members, rest).map(|(depth, span)| (depth + 1, span)),
        Value::List(items) => rest.split_first().and_then(|(name, rest)| {
            let named = items.iter().find_map(|item| {
                let Value::Object(members) = &item.value else { return None };
                let is_name = |member: &&Member| {
                    member.key.eq_ignore_ascii_case("name")
                        && matches!(&member.value.value, Value::String(text) if text == name)
                };
                Some((members, members.iter().find(is_name)?.value.span))
            });
            let (members, name) = named?;
            Some(find(members, rest).map_or((2, name), |(depth, span)| (depth + 2, span)))
        }),
        _ => None,
    };
    Some(deeper.unwrap_or(here))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::SourceMap;

    #[test]
    fn c5_the_place_of_a_key_is_found_in_the_rendered_text() {
        let file = |text: &str| SourceFile {
            name: "a".to_owned(),
            source: text.into(),
            rendered: text.into(),
            map: SourceMap::default(),
        };
        let texts = ["{ stopTimeout: '5s' }", "{ jobs: [{ name: 'a' }, { NAME: 'b', drain: '1s' }] }"];
        let files = texts.map(file);
        let found = |path: &[&str]| {
            let place = place_of(&files, path)?;
            let file = usize::from(place.file.0);
            Some((file, texts.get(file)?.get(place.span.range())?))
        };
        assert_eq!(found(&["stopTimeout"]), Some((0, "stopTimeout")));
        assert_eq!(found(&["jobs", "b", "drain"]), Some((1, "drain")));
        assert_eq!(found(&["jobs", "b", "killAfter"]), Some((1, "'b'")));
        assert_eq!(found(&["jobs", "c"]), Some((1, "jobs")));
        assert_eq!(found(&["telemetry"]), None);
        assert_eq!(found(&[]), None);
    }
}
