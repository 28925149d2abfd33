//! A client that can be asked all_capabilities, and says yes.

use serde_json::{Map, Value, json};

/// The capabilities of a client that can be asked everything.
pub fn all_capabilities() -> Value {
    json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} }, "roots": { "listChanged": true } })
}

/// What a accept_all client answers to a question: forms are filled in with whatever fits, models say "Paris".
///
/// # Panics
/// When the question is none that a server may ask.
pub fn accept_all(question: &Value) -> Value {
    let params = &question["params"];
    match question["method"].as_str().unwrap_or_default() {
        "roots/list" => json!({ "roots": [{ "uri": "file:///work", "name": "work" }] }),
        "sampling/createMessage" => {
            let said = json!({ "type": "text", "text": "Paris" });
            json!({ "role": "assistant", "model": "test-model", "content": said })
        }
        "elicitation/create" if params["mode"] == "url" => json!({ "action": "accept" }),
        "elicitation/create" => {
            let fields = params["requestedSchema"]["properties"].as_object().cloned().unwrap_or_default();
            let values: Map<String, Value> =
                fields.iter().map(|(name, field)| (name.clone(), value(field))).collect();
            json!({ "action": "accept", "content": values })
        }
        other => panic!("a server asked for {other}"),
    }
}

/// A value that fits a field.
fn value(field: &Value) -> Value {
    let first = |choices: &Value| {
        let plain = choices.get("enum").and_then(|values| values.get(0)).cloned();
        let titled = choices.get("oneOf").or_else(|| choices.get("anyOf"));
        plain.or_else(|| titled?.get(0)?.get("const").cloned())
    };
    let least = |plain: Value| field.get("minimum").cloned().unwrap_or(plain);
    match (field["type"].as_str(), field["format"].as_str()) {
        (Some("array"), _) => Value::Array(first(&field["items"]).into_iter().collect()),
        (Some("boolean"), _) => json!(true),
        (Some("integer"), _) => least(json!(42)),
        (Some("number"), _) => least(json!(0.25)),
        (_, Some("email")) => json!("alice@example.com"),
        (_, Some("uri")) => json!("https://example.com/"),
        (_, Some("date")) => json!("2024-05-06"),
        (_, Some("date-time")) => json!("2024-05-06T07:08:09Z"),
        _ => first(field).unwrap_or_else(|| {
            let length = field["minLength"].as_u64().and_then(|least| usize::try_from(least).ok());
            json!(format!("{:a<1$}", "Alice", length.unwrap_or(0)))
        }),
    }
}
