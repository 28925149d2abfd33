//! Answers to elicitation forms.

use serde_json::{Map, Value, json};

/// The choices of an enum field, in any of the shapes the revisions have.
fn choices(field: &Value) -> Option<Vec<Value>> {
    if let Some(values) = field["enum"].as_array() {
        return Some(values.clone());
    }
    let titled = field["oneOf"].as_array().or(field["anyOf"].as_array())?;
    Some(titled.iter().map(|option| option["const"].clone()).collect())
}

/// `string`, `number`, `integer`, `boolean`, `array`, or `enum` for a choice of one.
pub fn kind(field: &Value) -> String {
    match choices(field) {
        Some(_) => "enum".to_owned(),
        None => field["type"].as_str().unwrap_or("nothing").to_owned(),
    }
}

fn answer(name: &str, field: &Value) -> Value {
    if let Some(choices) = choices(field) {
        return choices.last().cloned().unwrap_or_default();
    }
    match field["type"].as_str() {
        Some("array") => {
            let most = field["maxItems"].as_u64().unwrap_or(2).min(2);
            let count = field["minItems"].as_u64().unwrap_or(0).max(most);
            let choices = choices(&field["items"]).unwrap_or_default();
            choices.into_iter().take(usize::try_from(count).unwrap_or(usize::MAX)).collect()
        }
        Some("boolean") => json!(true),
        Some("integer" | "number") => {
            let at_least = field["minimum"].as_f64().unwrap_or(42.0).max(42.0);
            let number = field["maximum"].as_f64().unwrap_or(at_least).min(at_least);
            if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
        }
        _ => {
            let text = match field["format"].as_str() {
                Some("email") => "test@example.org".to_owned(),
                Some("uri") => "https://example.org/test".to_owned(),
                Some("date") => "2026-01-02".to_owned(),
                Some("date-time") => "2026-01-02T03:04:05Z".to_owned(),
                _ => format!("test-{name}"),
            };
            let length = |key: &str| field[key].as_u64().and_then(|length| usize::try_from(length).ok());
            let text = format!("{text:x<width$}", width = length("minLength").unwrap_or(0));
            json!(text.chars().take(length("maxLength").unwrap_or(usize::MAX)).collect::<String>())
        }
    }
}

/// The fields of a form question.
pub fn fields(question: &Value) -> Map<String, Value> {
    question["requestedSchema"]["properties"].as_object().cloned().unwrap_or_default()
}

/// An answer to every field that the form allows.
pub fn fill(question: &Value) -> Value {
    fields(question)
        .iter()
        .map(|(name, field)| (name.clone(), answer(name, field)))
        .collect::<Map<_, _>>()
        .into()
}
