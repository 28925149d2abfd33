//! Approval of a call: it is shown before it is made. What a tool says about itself is a hint and no proof, and is shown as one.

use refmcp_proto::model::{JsonObject, Tool};
use serde_json::Value;

use crate::ui::render::{hints, tool_title};
use crate::ui::terminal::{AskError, Terminal};

/// What was decided about a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Approval {
    /// Make it, with these arguments.
    Run(JsonObject),
    /// Do not.
    Refused,
}

/// Whether a call is asked about: not when asking was ruled out, and not for a tool that says it only reads.
pub(crate) fn is_asked_about(tool: &Tool, yes: bool) -> bool {
    !yes && tool.annotations.as_ref().and_then(|hints| hints.read_only_hint) != Some(true)
}

/// Shows a call and asks whether to make it; its arguments can be changed, to ones that pass the check.
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
) -> Result<Approval, AskError> {
    loop {
        match ask(terminal, server, tool, &arguments) {
            Ok('y') => return Ok(Approval::Run(arguments)),
            Ok('e') => match edit(terminal, &arguments, check) {
                Ok(changed) => arguments = changed,
                // Giving up on a change is not giving up on the call.
                Err(AskError::Ended) => terminal.say("The arguments stay as they are.")?,
                Err(other) => return Err(other),
            },
            Ok(_) | Err(AskError::Ended) => return Ok(Approval::Refused),
            Err(other) => return Err(other),
        }
    }
}

fn ask(terminal: &mut Terminal, server: &str, tool: &Tool, arguments: &JsonObject) -> Result<char, AskError> {
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

    fn decided(typed: &str) -> (Approval, String) {
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
        let as_it_was = Approval::Run(object(&json!({"disk": "a\x1b[2J"})));
        for (typed, expected) in [
            ("y\n", as_it_was.clone()),
            ("yes\n", as_it_was.clone()),
            ("\n", Approval::Refused),
            ("n\n", Approval::Refused),
            ("", Approval::Refused),
            ("what?\ny\n", as_it_was.clone()),
            ("e\n\ny\n", as_it_was),
            ("e\n{\"disk\":\"b\"}\ny\n", Approval::Run(object(&json!({"disk": "b"})))),
            ("e\n{}\n[]\n{\"disk\":1}\ny\n", Approval::Run(object(&json!({"disk": 1})))),
            ("e\n{\"disk\":\"b\"}\nn\n", Approval::Refused),
            ("e\n", Approval::Refused),
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
}
