//! Questions to the user: calls to approve, elicitations, arguments that were not typed.

mod form;

pub(crate) use form::fill_form;

use refmcp_proto::model::{ElicitAction, ElicitUrlParams, JsonObject, Tool};
use serde_json::Value;
use url::Url;

use crate::arguments::{ArgumentField, missing_fields};
use crate::ui::render::{hints, tool_title};
use crate::ui::terminal::{AskError, Terminal};

/// Whether a call is asked about: not when asking was ruled out, and not for a tool that says it only reads.
pub(crate) fn is_asked_about(tool: &Tool, yes: bool) -> bool {
    !yes && tool.annotations.as_ref().and_then(|hints| hints.read_only_hint) != Some(true)
}

/// Shows a call and asks whether to make it; its arguments can be changed, to ones that pass the check. Gives the arguments
/// to call with; none where the call is refused.
///
/// # Errors
///
/// The terminal cannot be used. The end of the input refuses.
pub(crate) fn approve(
    terminal: &mut Terminal,
    server: &str,
    tool: &Tool,
    mut arguments: JsonObject,
    check: &dyn Fn(&JsonObject) -> Result<(), String>,
) -> Result<Option<JsonObject>, AskError> {
    loop {
        match ask_approval(terminal, server, tool, &arguments) {
            Ok('y') => return Ok(Some(arguments)),
            Ok('e') => match edit(terminal, &arguments, check) {
                Ok(changed) => arguments = changed,
                // Giving up on a change is not giving up on the call.
                Err(AskError::Ended) => terminal.say("The arguments stay as they are.")?,
                Err(other) => return Err(other),
            },
            Ok(_) | Err(AskError::Ended) => return Ok(None),
            Err(other) => return Err(other),
        }
    }
}

fn ask_approval(
    terminal: &mut Terminal,
    server: &str,
    tool: &Tool,
    arguments: &JsonObject,
) -> Result<char, AskError> {
    let title = tool_title(tool).filter(|title| *title != tool.name).map(|title| format!(" ({title})"));
    terminal.say_strong(&format!("Call {}{} of {server}", tool.name, title.unwrap_or_default()))?;
    for (name, value) in arguments {
        terminal.say(&format!("  {name} = {value}"))?;
    }
    if arguments.is_empty() {
        terminal.say("  without arguments")?;
    }
    let said = hints(tool);
    if said.is_empty() {
        terminal.say_faint("  The server does not say what it may change.")?;
    } else {
        terminal.say_faint(&format!(
            "  The server says it {}; that is a hint, not a promise.",
            said.join(", ")
        ))?;
    }
    terminal.letter("Run it? [yes, edit, No]", &["yes", "edit", "no"], 'n')
}

fn edit(
    terminal: &mut Terminal,
    arguments: &JsonObject,
    check: &dyn Fn(&JsonObject) -> Result<(), String>,
) -> Result<JsonObject, AskError> {
    let checked = |value: &Value| match value {
        Value::Object(arguments) => check(arguments),
        _ => Err("The arguments must be an object.".to_owned()),
    };
    match terminal.edit_json(&Value::Object(arguments.clone()), &checked)? {
        Value::Object(arguments) => Ok(arguments),
        _ => Err(AskError::Ended),
    }
}

/// Asks for every required argument that is missing, and adds the answers.
pub(crate) fn ask_missing(
    terminal: &mut Terminal,
    schema: &JsonObject,
    arguments: &mut JsonObject,
) -> Result<(), AskError> {
    for question in missing_fields(schema, arguments) {
        let value = ask_field(terminal, schema, &question)?;
        arguments.insert(question.name, value);
    }
    Ok(())
}

fn ask_field(
    terminal: &mut Terminal,
    schema: &JsonObject,
    question: &ArgumentField,
) -> Result<Value, AskError> {
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

/// What the user chose, and the page to open.
pub(crate) type Consent = (ElicitAction, Option<Url>);

/// Shows where a server wants to send the user, and asks. The end of the input cancels.
pub(crate) fn ask_to_visit(
    terminal: &mut Terminal,
    server: &str,
    params: &ElicitUrlParams,
) -> Result<Consent, AskError> {
    match ask_consent(terminal, server, params) {
        Err(AskError::Ended) => Ok((ElicitAction::Cancel, None)),
        other => other,
    }
}

fn ask_consent(terminal: &mut Terminal, server: &str, params: &ElicitUrlParams) -> Result<Consent, AskError> {
    terminal.say_strong(&format!("The server {server} asks you to visit a page:"))?;
    terminal.say(&params.message)?;
    let page = match visitable(&params.url) {
        Ok(page) => page,
        Err(why) => {
            terminal.warn(&format!("It is not opened: {why}. The address is {}", params.url))?;
            return Ok((ElicitAction::Decline, None));
        }
    };
    terminal.say(&format!("  address  {page}"))?;
    terminal.say(&format!("  host     {}", page.host_str().unwrap_or_default()))?;
    for warning in warnings(&page) {
        terminal.warn(&format!("  careful: {warning}"))?;
    }
    terminal.say_faint("The server chose this address. What you do there does not pass through refmcp.")?;
    let question = "Open it? [yes, No = decline, cancel]";
    Ok(match terminal.letter(question, &["yes", "no", "cancel"], 'n')? {
        'y' => (ElicitAction::Accept, Some(page)),
        'c' => (ElicitAction::Cancel, None),
        _ => (ElicitAction::Decline, None),
    })
}

/// An address that may be opened at all.
fn visitable(address: &str) -> Result<Url, String> {
    let page = Url::parse(address).map_err(|error| format!("the address cannot be read, {error}"))?;
    match page.scheme() {
        "http" | "https" => Ok(page),
        other => Err(format!("only http and https are, not {other}")),
    }
}

/// What makes an address look like another.
fn warnings(page: &Url) -> Vec<String> {
    let mut warnings = Vec::new();
    let host = page.host_str().unwrap_or_default();
    if host.split('.').any(|label| label.starts_with("xn--")) {
        warnings.push("the host's name has letters that can look like others".to_owned());
    }
    if !page.username().is_empty() || page.password().is_some() {
        warnings.push(format!("what stands before the @ is not the host; the host is {host}"));
    }
    let local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    if page.scheme() == "http" && !local {
        warnings.push("the connection is not encrypted".to_owned());
    }
    warnings
}

#[cfg(test)]
mod tests {
    use refmcp_proto::model::ToolAnnotations;
    use serde_json::json;

    use super::*;
    use crate::ui::terminal::scripted::scripted;

    fn wipe() -> Tool {
        Tool::new("wipe", "Wipes").title("Wipe it").annotations(ToolAnnotations::new().destructive(true))
    }

    fn object(value: &Value) -> JsonObject {
        value.as_object().unwrap().clone()
    }

    fn decided(typed: &str) -> (Option<JsonObject>, String) {
        let (mut terminal, screen) = scripted(typed);
        let arguments = object(&json!({"disk": "a\x1b[2J"}));
        let check = |arguments: &JsonObject| {
            if arguments.contains_key("disk") { Ok(()) } else { Err("disk is missing".to_owned()) }
        };
        let approval = approve(&mut terminal, "store", &wipe(), arguments, &check).unwrap();
        (approval, screen.text())
    }

    #[test]
    fn a_call_is_shown_and_asked_about() {
        let as_it_was = Some(object(&json!({"disk": "a\x1b[2J"})));
        for (typed, expected) in [
            ("y\n", as_it_was.clone()),
            ("yes\n", as_it_was.clone()),
            ("\n", None),
            ("n\n", None),
            ("", None),
            ("what?\ny\n", as_it_was.clone()),
            ("e\n\ny\n", as_it_was),
            ("e\n{\"disk\":\"b\"}\ny\n", Some(object(&json!({"disk": "b"})))),
            ("e\n{}\n[]\n{\"disk\":1}\ny\n", Some(object(&json!({"disk": 1})))),
            ("e\n{\"disk\":\"b\"}\nn\n", None),
            ("e\n", None),
        ] {
            let (approval, shown) = decided(typed);
            assert_eq!(approval, expected, "{typed:?}: {shown}");
            assert!(shown.starts_with("Call wipe (Wipe it) of store\n  disk = \"a"), "{shown}");
            assert!(shown.contains("says it may destroy things; that is a hint"), "{shown}");
            assert!(!shown.contains('\x1b'), "{shown:?}");
        }
    }

    #[test]
    fn only_tools_that_may_change_something_are_asked_about() {
        let with = |annotations| Tool::new("t", "").annotations(annotations);
        for (tool, yes, expected) in [
            (Tool::new("t", ""), false, true),
            (Tool::new("t", ""), true, false),
            (with(ToolAnnotations::new().read_only(true)), false, false),
            (with(ToolAnnotations::new().read_only(false)), false, true),
            (wipe(), true, false),
            (wipe(), false, true),
        ] {
            assert_eq!(is_asked_about(&tool, yes), expected, "{tool:?}");
        }
    }

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

    fn asked(address: &str, typed: &str) -> (Consent, String) {
        let (mut terminal, screen) = scripted(typed);
        let params = ElicitUrlParams::new("Sign in", address);
        (ask_to_visit(&mut terminal, "shop", &params).unwrap(), screen.text())
    }

    #[test]
    fn the_whole_address_and_its_host_are_shown_and_asked_about() {
        let address = "https://example.org/sign-in?state=1234";
        for (typed, action, opened) in [
            ("y\n", ElicitAction::Accept, true),
            ("\n", ElicitAction::Decline, false),
            ("no\n", ElicitAction::Decline, false),
            ("c\n", ElicitAction::Cancel, false),
            ("", ElicitAction::Cancel, false),
        ] {
            let ((chosen, page), shown) = asked(address, typed);
            assert_eq!((chosen, page.is_some()), (action, opened), "{typed:?}");
            for part in ["The server shop asks you to visit", address, "host     example.org\n"] {
                assert!(shown.contains(part), "{part} in {shown}");
            }
            assert!(!shown.contains("careful"), "{shown}");
        }
    }

    #[test]
    fn tricks_are_pointed_out() {
        for (address, warning) in [
            ("http://example.org/", "not encrypted"),
            ("https://bank.example@evil.example/", "the host is evil.example"),
            ("https://ex\u{430}mple.org/", "look like others"),
        ] {
            let (_, shown) = asked(address, "n\n");
            assert!(shown.contains("careful") && shown.contains(warning), "{shown}");
        }
        assert!(!asked("http://localhost:3000/", "n\n").1.contains("careful"));
    }

    #[test]
    fn other_schemes_are_never_opened() {
        for address in ["file:///etc/passwd", "javascript:alert(1)", "ms-msdt:/x", "not an address", "-x", ""]
        {
            let (consent, shown) = asked(address, "y\n");
            assert_eq!(consent, (ElicitAction::Decline, None), "{address}");
            assert!(shown.contains("not opened"), "{shown}");
        }
    }
}
