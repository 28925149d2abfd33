//! Arguments that were not typed.

use refmcp_proto::model::JsonObject;
use serde_json::Value;

use crate::arguments::{ArgumentField, missing_fields};
use crate::ui::terminal::{AskError, Terminal};

/// Asks for every required argument that is missing, and adds the answers.
pub(crate) fn ask_missing(
    terminal: &mut Terminal,
    schema: &JsonObject,
    arguments: &mut JsonObject,
) -> Result<(), AskError> {
    for question in missing_fields(schema, arguments) {
        let value = ask(terminal, schema, &question)?;
        arguments.insert(question.name, value);
    }
    Ok(())
}

fn ask(terminal: &mut Terminal, schema: &JsonObject, question: &ArgumentField) -> Result<Value, AskError> {
    let label = match &question.title {
        Some(title) if *title != question.name => format!("{title} ({})", question.name),
        _ => question.name.clone(),
    };
    if let Some(description) = &question.description {
        terminal.say_faint(description)?;
    }
    let default = question
        .default
        .as_ref()
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    if !question.choices.is_empty() {
        let preset = question.choices.iter().position(|choice| Some(choice) == default.as_ref());
        let chosen = terminal.choose(&label, &question.choices, preset)?;
        let text = question.choices.get(chosen).map(String::as_str).unwrap_or_default();
        return Ok(question.parse(schema, text).unwrap_or_else(|_| Value::from(text)));
    }
    loop {
        let label = format!("{label}, {}", question.expected);
        let typed = if question.secret {
            terminal.hidden(&label)?
        } else {
            terminal.text(&label, default.as_deref())?
        };
        match question.parse(schema, &typed) {
            Ok(value) => return Ok(value),
            Err(why) => terminal.warn(&why)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ui::terminal::scripted::scripted;

    fn schema() -> JsonObject {
        let schema = json!({
            "type": "object",
            "properties": {
                "count": {"type": "integer", "minimum": 1, "description": "How many"},
                "colour": {"enum": ["red", "green"]},
                "name": {"type": "string", "title": "Your name", "default": "Ada"},
                "note": {"type": "string"},
            },
            "required": ["count", "colour", "name"],
        });
        schema.as_object().unwrap().clone()
    }

    #[test]
    fn what_is_missing_is_asked_for_until_it_fits() {
        let (mut terminal, screen) = scripted("many\n0\n3\n2\n\n");
        let mut arguments = JsonObject::new();
        ask_missing(&mut terminal, &schema(), &mut arguments).unwrap();
        assert_eq!(Value::Object(arguments), json!({"count": 3, "colour": "green", "name": "Ada"}));
        let shown = screen.text();
        assert!(shown.contains("How many\ncount, an integer from 1: "), "{shown}");
        assert!(shown.contains("expected an integer from 1, not \"many\""), "{shown}");
        assert!(shown.contains("Your name (name), a text [Ada]: "), "{shown}");
    }

    #[test]
    fn what_is_there_is_not_asked_for() {
        let (mut terminal, screen) = scripted("");
        let all = json!({"count": 1, "colour": "red", "name": "x"});
        let mut arguments = all.as_object().unwrap().clone();
        ask_missing(&mut terminal, &schema(), &mut arguments).unwrap();
        assert_eq!((Value::Object(arguments), screen.text().as_str()), (all, ""));
    }
}
