//! Responses of a test client that has all capabilities and accepts every server request.

use serde_json::{Map, Value, json};

/// Capabilities for every server request: sampling, elicitation, roots.
pub fn all_capabilities() -> Value {
    json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} }, "roots": { "listChanged": true } })
}

/// The result for a server request: forms are filled in with values that fit, models say "Paris".
///
/// # Panics
/// On a method that is no server request.
pub fn accept_all(request: &Value) -> Value {
    let params = &request["params"];
    match request["method"].as_str().unwrap_or_default() {
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
