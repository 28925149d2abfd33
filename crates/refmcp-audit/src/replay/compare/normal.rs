//! Messages without what changes from run to run by its nature.

use serde_json::Value;

/// Members whose values are made up anew in every run.
const VOLATILE: [&str; 8] = [
    "cursor",
    "nextCursor",
    "requestState",
    "progressToken",
    "taskId",
    "elicitationId",
    "sessionId",
    "io.modelcontextprotocol/subscriptionId",
];

/// What stands in place of a value that does not count.
const ANY: &str = "…";

/// Which members do not count.
pub(super) struct Normal {
    ignored: Vec<Vec<String>>,
}

impl Normal {
    pub(super) fn new(ignored: &[String]) -> Self {
        let words = |pointer: &String| {
            let words = pointer.split('/').skip(1);
            words.map(|word| word.replace("~1", "/").replace("~0", "~")).collect()
        };
        Self { ignored: ignored.iter().map(words).collect() }
    }

    /// The message as it is compared.
    pub(super) fn value(&self, message: &Value) -> Value {
        let mut value = message.clone();
        let Some(members) = value.as_object_mut() else { return value };
        members.remove("id");
        if let Some(params) = members.get_mut("params").and_then(Value::as_object_mut) {
            // The request that is cancelled is one of a made up id.
            if let Some(id) = params.get_mut("requestId") {
                *id = ANY.into();
            }
        }
        self.normalise(&mut value, &mut Vec::new());
        value
    }

    fn normalise(&self, value: &mut Value, path: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                let is_ignored = |path: &[String]| self.ignored.iter().any(|ignored| fits(ignored, path));
                let mut gone = Vec::new();
                for (name, value) in members.iter_mut() {
                    path.push(name.clone());
                    if is_ignored(path) {
                        gone.push(name.clone());
                    } else if VOLATILE.contains(&name.as_str()) && !value.is_object() {
                        *value = ANY.into();
                    } else {
                        self.normalise(value, path);
                    }
                    path.pop();
                }
                for name in gone {
                    members.remove(&name);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    path.push(at.to_string());
                    if self.ignored.iter().any(|ignored| fits(ignored, path)) {
                        *item = ANY.into();
                    } else {
                        self.normalise(item, path);
                    }
                    path.pop();
                }
            }
            Value::String(text) => {
                if let Some(plain) = without_volatile(text) {
                    *text = plain;
                }
            }
            _ => {}
        }
    }
}

/// Whether a pattern leads to a member. One that is shorter has held further up.
fn fits(pattern: &[String], path: &[String]) -> bool {
    pattern.len() == path.len() && pattern.iter().zip(path).all(|(word, name)| word == "*" || word == name)
}

/// A text with `…` in place of times (RFC 3339) and UUIDs; none where it has neither.
fn without_volatile(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    let mut has_any = false;
    while let Some(c) = rest.chars().next() {
        let is_start = out.chars().next_back().is_none_or(|before| !before.is_ascii_alphanumeric());
        let length = if is_start { time_length(rest).or_else(|| uuid_length(rest)) } else { None };
        let taken = match length {
            Some(length) => {
                out.push_str(ANY);
                has_any = true;
                length
            }
            None => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    has_any.then_some(out)
}

/// How long a pattern is that a text begins with: `d` is a digit, `x` a hexadecimal one, all else is itself.
fn matched(text: &str, pattern: &str) -> Option<usize> {
    let mut bytes = text.bytes();
    let fits = |(wanted, byte): (u8, Option<u8>)| {
        byte.is_some_and(|byte| match wanted {
            b'd' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit(),
            wanted => byte.eq_ignore_ascii_case(&wanted),
        })
    };
    pattern.bytes().all(|wanted| fits((wanted, bytes.next()))).then_some(pattern.len())
}

/// A time with its date and offset.
fn time_length(text: &str) -> Option<usize> {
    let mut length = matched(text, "dddd-dd-ddTdd:dd:dd")?;
    let rest = |length: usize| text.get(length..).unwrap_or_default();
    if rest(length).starts_with('.') {
        length += 1 + rest(length + 1).bytes().take_while(u8::is_ascii_digit).count();
    }
    let offset = matched(rest(length), "Z")
        .or_else(|| matched(rest(length), "+dd:dd"))
        .or_else(|| matched(rest(length), "-dd:dd"));
    Some(length + offset.unwrap_or_default())
}

fn uuid_length(text: &str) -> Option<usize> {
    matched(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_and_uuids_do_not_count() {
        for (text, plain) in [
            ("2026-11-18T10:00:00Z", Some("…")),
            ("at 2026-11-18t10:00:00.123+01:00, done", Some("at …, done")),
            ("id 123e4567-e89b-12d3-a456-426614174000.", Some("id ….")),
            ("2026-11-18", None),
            ("v12026-11-18T10:00:00Z", None),
            ("ä", None),
        ] {
            assert_eq!(without_volatile(text).as_deref(), plain, "{text}");
        }
    }

    #[test]
    fn ids_cursors_and_ignored_members_do_not_count() {
        let normal = Normal::new(&["/result/tools/*/age".to_owned(), "/result/a~1b".to_owned()]);
        let message = json!({
            "jsonrpc": "2.0", "id": 7,
            "result": { "nextCursor": "x", "a/b": 1, "tools": [{ "age": 1, "id": 2 }], "age": 3 },
        });
        let plain = json!({
            "jsonrpc": "2.0", "result": { "nextCursor": ANY, "tools": [{ "id": 2 }], "age": 3 },
        });
        assert_eq!(normal.value(&message), plain);
    }
}
