//! Form elicitation: a form that a server asks for is filled in, declined or cancelled.

use refmcp_proto::model::{
    Choices, ElicitAction, ElicitFormParams, ElicitResult, FieldSchema, FormSchema, JsonObject, NumberKind,
    StringFormat,
};
use serde_json::{Number, Value};

use crate::ui::terminal::{AskError, Terminal};

/// Shows what the server asks for and lets it be filled in, declined or cancelled. The end of the input cancels.
pub(crate) fn fill_form(
    terminal: &mut Terminal,
    server: &str,
    params: &ElicitFormParams,
) -> Result<ElicitResult, AskError> {
    match answer(terminal, server, params) {
        Err(AskError::Ended) => Ok(ElicitResult::new(ElicitAction::Cancel)),
        other => other,
    }
}

fn answer(
    terminal: &mut Terminal,
    server: &str,
    params: &ElicitFormParams,
) -> Result<ElicitResult, AskError> {
    terminal.say_strong(&format!("The server {server} asks:"))?;
    terminal.say(&params.message)?;
    terminal.say_faint("What you answer is sent to that server. Never give it a password.")?;
    let question = "Answer? [Yes, no = decline, cancel]";
    match terminal.letter(question, &["yes", "no", "cancel"], 'y')? {
        'n' => return Ok(ElicitResult::new(ElicitAction::Decline)),
        'c' => return Ok(ElicitResult::new(ElicitAction::Cancel)),
        _ => {}
    }
    let form = &params.requested_schema;
    let mut content = JsonObject::new();
    loop {
        for (name, field) in &form.properties {
            let required = form.required.contains(name);
            match ask(terminal, name, field, required, content.get(name))? {
                Some(value) => drop(content.insert(name.clone(), value)),
                None => drop(content.remove(name)),
            }
        }
        if let Err(why) = form.check(&content) {
            // A form can require a field that it does not have; nothing that is typed can satisfy it.
            terminal.warn(&format!("This cannot be sent: {why}."))?;
            let again = terminal.confirm("Fill it in again? Otherwise it is declined")?;
            if again {
                continue;
            }
            return Ok(ElicitResult::new(ElicitAction::Decline));
        }
        terminal.say(&format!("To be sent: {}", Value::Object(content.clone())))?;
        let question = "Send it? [Yes, edit, no = decline, cancel]";
        match terminal.letter(question, &["yes", "edit", "no", "cancel"], 'y')? {
            'e' => {}
            'n' => return Ok(ElicitResult::new(ElicitAction::Decline)),
            'c' => return Ok(ElicitResult::new(ElicitAction::Cancel)),
            _ => return Ok(ElicitResult::accept(content)),
        }
    }
}

/// Asks for one field until the answer fits; `None` when it is left out.
fn ask(
    terminal: &mut Terminal,
    name: &str,
    field: &FieldSchema,
    required: bool,
    before: Option<&Value>,
) -> Result<Option<Value>, AskError> {
    // Every kind of field has these members.
    let schema = serde_json::to_value(field).unwrap_or_default();
    let text = |member: &str| schema.get(member).and_then(Value::as_str);
    let label = text("title").unwrap_or(name);
    let optional = if required { "" } else { ", may be left out with -" };
    let hint = format!("{}{optional}", expectation(field));
    terminal
        .say_faint(&text("description").map_or_else(|| hint.clone(), |about| format!("{about} ({hint})")))?;
    let default = before.or(schema.get("default")).cloned();
    if let Some((values, titles)) = choices(field).map(values_and_titles) {
        list(terminal, &values, &titles)?;
    }
    let alone = FormSchema::new().optional(name, field.clone());
    let shown = default.as_ref().map(plain);
    loop {
        let typed = terminal.text(label, shown.as_deref())?;
        if !required && (typed == "-" || typed.is_empty()) {
            return Ok(None);
        }
        let value = match (&default, &shown) {
            (Some(default), Some(shown)) if typed == *shown => Ok(default.clone()),
            _ if typed.is_empty() => Err("an answer is required".to_owned()),
            _ => read(field, &typed),
        };
        let checked = value.and_then(|value| {
            let content = JsonObject::from_iter([(name.to_owned(), value.clone())]);
            alone.check(&content).map(|()| value)
        });
        match checked {
            Ok(value) => return Ok(Some(value)),
            Err(why) => terminal.warn(&format!("That does not fit: {why}."))?,
        }
    }
}

/// The choices of a field.
fn choices(field: &FieldSchema) -> Option<&Choices> {
    match field {
        FieldSchema::SingleChoice(schema) => Some(&schema.choices),
        FieldSchema::MultiChoice(schema) => Some(&schema.choices),
        _ => None,
    }
}

/// What fits a field, in words.
fn expectation(field: &FieldSchema) -> String {
    match field {
        FieldSchema::Text(schema) => {
            let what = match &schema.format {
                Some(StringFormat::Email) => "a mail address",
                Some(StringFormat::Uri) => "a URI",
                Some(StringFormat::Date) => "a day, YYYY-MM-DD",
                Some(StringFormat::DateTime) => "a moment, YYYY-MM-DDThh:mm:ssZ",
                Some(StringFormat::Other(_)) | None => "a text",
            };
            let length = bounds(schema.min_length, schema.max_length);
            length.map_or_else(|| what.to_owned(), |length| format!("{what}, {length} characters"))
        }
        FieldSchema::Number(schema) => {
            let what = if schema.kind == NumberKind::Integer { "a whole number" } else { "a number" };
            let range = bounds(schema.minimum.as_ref(), schema.maximum.as_ref());
            range.map_or_else(|| what.to_owned(), |range| format!("{what}, {range}"))
        }
        FieldSchema::Boolean(_) => "yes or no".to_owned(),
        FieldSchema::SingleChoice(_) => "one of these, by number or name".to_owned(),
        FieldSchema::MultiChoice(schema) => {
            let count = bounds(schema.min_items, schema.max_items);
            let what = "any of these, by numbers or names with commas between them";
            count.map_or_else(|| what.to_owned(), |count| format!("{what}, {count} of them"))
        }
    }
}

fn bounds<T: std::fmt::Display>(least: Option<T>, most: Option<T>) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    }
}

fn values_and_titles(choices: &Choices) -> (Vec<&str>, Vec<&str>) {
    let values = choices.values();
    let titles: Vec<&str> = match choices {
        Choices::Plain(_) => values.clone(),
        Choices::Titled(titled) => titled.iter().map(|choice| choice.title.as_str()).collect(),
        Choices::Named { names, .. } => {
            // The two lists come from the server and need not be equally long.
            let names = names.iter().map(String::as_str).map(Some).chain(std::iter::repeat(None));
            values.iter().zip(names).map(|(value, name)| name.unwrap_or(value)).collect()
        }
    };
    (values, titles)
}

fn list(terminal: &mut Terminal, values: &[&str], titles: &[&str]) -> Result<(), AskError> {
    for (number, (value, title)) in (1..).zip(values.iter().zip(titles)) {
        let value = if value == title { String::new() } else { format!("  ({value})") };
        terminal.say(&format!("  {number:>2}  {title}{value}"))?;
    }
    Ok(())
}

/// A default as it would be typed.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

/// What was typed, as a value of the field's kind.
fn read(field: &FieldSchema, typed: &str) -> Result<Value, String> {
    match field {
        FieldSchema::Text(_) => Ok(Value::from(typed)),
        FieldSchema::Number(_) => serde_json::from_str::<Number>(typed)
            .map(Value::Number)
            .map_err(|_| format!("{typed:?} is no number")),
        FieldSchema::Boolean(_) => match typed.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(Value::Bool(true)),
            "n" | "no" | "false" => Ok(Value::Bool(false)),
            _ => Err(format!("{typed:?} is neither yes nor no")),
        },
        FieldSchema::SingleChoice(schema) => chosen(&schema.choices, typed).map(Value::from),
        FieldSchema::MultiChoice(schema) => {
            let mut all: Vec<String> = Vec::new();
            for word in typed.split(',').map(str::trim).filter(|word| !word.is_empty() && *word != "-") {
                let value = chosen(&schema.choices, word)?;
                if !all.contains(&value) {
                    all.push(value);
                }
            }
            Ok(Value::from(all))
        }
    }
}

/// The value of a choice by its own name, its title, or its number.
fn chosen(choices: &Choices, typed: &str) -> Result<String, String> {
    let (values, titles) = values_and_titles(choices);
    let number = || typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let index = values
        .iter()
        .position(|value| *value == typed)
        .or_else(|| titles.iter().position(|title| title.eq_ignore_ascii_case(typed)))
        .or_else(number);
    let value = index.and_then(|index| values.get(index));
    value.map(|value| (*value).to_owned()).ok_or_else(|| format!("{typed:?} is none of the choices"))
}

#[cfg(test)]
mod tests;
