//! Values replaced in a JSON text whose other bytes stay.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Deeper values stay as they are; the parsers of messages allow no more either.
const MAX_DEPTH: usize = 128;

/// Replaces scalars. The function gets the names of the members that lead to each one, an empty one for an item of an array, and
/// its text; it returns the text to put in its place.
pub(super) fn replaced(
    text: &str,
    mut replacement: impl FnMut(&[Cow<'_, str>], &str) -> Option<String>,
) -> String {
    let mut edits = Vec::new();
    if let Ok(whole) = serde_json::from_str::<&RawValue>(text) {
        visit(text, whole, &mut Vec::new(), &mut replacement, &mut edits);
    }
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, instead) in edits {
        out.push_str(text.get(at..range.start).unwrap_or_default());
        out.push_str(&instead);
        at = range.end;
    }
    out + text.get(at..).unwrap_or_default()
}

/// The text of a string, if the text of a value is one.
pub(super) fn string(raw: &str) -> Option<String> {
    raw.starts_with('"').then(|| serde_json::from_str(raw).ok())?
}

fn visit<'a>(
    text: &str,
    value: &'a RawValue,
    path: &mut Vec<Cow<'a, str>>,
    replacement: &mut impl FnMut(&[Cow<'_, str>], &str) -> Option<String>,
    edits: &mut Vec<(Range<usize>, String)>,
) {
    let raw = value.get();
    if path.len() >= MAX_DEPTH {
        return;
    }
    if raw.starts_with('{') {
        let Ok(Members(members)) = serde_json::from_str(raw) else { return };
        for (name, value) in members {
            path.push(name);
            visit(text, value, path, replacement, edits);
            path.pop();
        }
    } else if raw.starts_with('[') {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw) else { return };
        for value in items {
            path.push(Cow::Borrowed(""));
            visit(text, value, path, replacement, edits);
            path.pop();
        }
    } else if let Some(instead) = replacement(path, raw) {
        // A value that is borrowed from the text has its place there.
        let start = (raw.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        if text.get(start..start.saturating_add(raw.len())) == Some(raw) {
            edits.push((start..start + raw.len(), instead));
        }
    }
}

/// The members of an object in their order, those of the same name included.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A name, borrowed where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_bytes_stay() {
        let text = r#" { "id" : 7, "a\u0062":[1.0e2 ,"x\ny",{"id":7}], "id":7 }"#;
        assert_eq!(replaced(text, |_, _| None), text);
        let new = replaced(text, |path, _| matches!(path, [id] if id == "id").then(|| "\"new\"".to_owned()));
        assert_eq!(new, r#" { "id" : "new", "a\u0062":[1.0e2 ,"x\ny",{"id":7}], "id":"new" }"#);
        let new = replaced(text, |path, raw| {
            let is_item = matches!(path, [name, item] if name == "ab" && item.is_empty());
            (is_item && string(raw).as_deref() == Some("x\ny")).then(|| "0".to_owned())
        });
        assert_eq!(new, r#" { "id" : 7, "a\u0062":[1.0e2 ,0,{"id":7}], "id":7 }"#);
    }

    #[test]
    fn what_is_no_json_and_what_is_deep_stays() {
        assert_eq!(replaced("no json", |_, _| Some(String::new())), "no json");
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(replaced(&deep, |_, _| Some(String::new())), deep);
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(replaced(&deep, |_, _| Some("2".to_owned())), deep);
    }
}
