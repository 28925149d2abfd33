//! Messages as lines of a transcript.

use serde_json::{Map, Value};

const WIDTH: usize = 110;

/// Members in the order in which a person reads a message; others follow by name, `_meta` comes last.
const FIRST: [&str; 13] = [
    "jsonrpc",
    "id",
    "method",
    "params",
    "result",
    "error",
    "code",
    "message",
    "data",
    "type",
    "name",
    "uri",
    "protocolVersion",
];

/// A message after `head`, on as many lines as it needs.
pub(super) fn message(head: &str, value: &Value) -> Vec<String> {
    let mut text = head.to_owned();
    write(&mut text, value, 0);
    text.lines().map(str::to_owned).collect()
}

fn write(text: &mut String, value: &Value, indent: usize) {
    let column = text.len() - text.rfind('\n').map_or(0, |at| at + 1);
    let flat = flat(value);
    if column + flat.len() <= WIDTH {
        return text.push_str(&flat);
    }
    let margin = format!("\n{}", " ".repeat(indent + 2));
    match value {
        Value::Object(members) if !members.is_empty() => {
            text.push('{');
            for (at, (key, value)) in ordered(members).into_iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                text.push_str(&margin);
                if key.starts_with('$') {
                    text.push_str(&member(key, value));
                } else {
                    text.push_str(&format!("{}:", Value::from(key)));
                    write(text, value, indent + 2);
                }
            }
            text.push('}');
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                text.push_str(&margin);
                write(text, item, indent + 2);
            }
            text.push(']');
        }
        _ => text.push_str(&flat),
    }
}

fn flat(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = ordered(members).into_iter().map(|(key, value)| member(key, value));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flat).collect::<Vec<_>>().join(",")),
        plain => plain.to_string(),
    }
}

fn member(key: &str, value: &Value) -> String {
    let bare = value.as_object().is_some_and(Map::is_empty);
    match key {
        "$META" | "$DONE" | "$CACHED" if bare => key.to_owned(),
        "$META" | "$DONE" | "$CACHED" => format!("{key}{}", flat(value)),
        _ => format!("{}:{}", Value::from(key), flat(value)),
    }
}

fn ordered(members: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut ordered: Vec<(&str, &Value)> = members.iter().map(|(key, value)| (key.as_str(), value)).collect();
    ordered.sort_by_key(|(key, _)| {
        let last = key.starts_with('$') || *key == "_meta";
        let rank = if last {
            FIRST.len() + 1
        } else {
            FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len())
        };
        (rank, *key)
    });
    ordered
}
