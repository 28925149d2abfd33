//! Tests of single questions, with answers that were written down before.

#[cfg(unix)]
mod keys;

use serde_json::json;

use super::*;
use crate::ui::terminal::scripted::scripted;

fn options() -> Vec<String> {
    ["red", "green", "blue"].map(str::to_owned).to_vec()
}

#[test]
fn a_text_has_a_default() {
    for (typed, expected) in [("hello \n", "hello"), ("\n", "Ada")] {
        let (mut terminal, shown) = scripted(typed);
        assert_eq!(terminal.text("Name", Some("Ada")).unwrap(), expected);
        assert_eq!(shown.text(), "Name [Ada]: ");
    }
}

#[test]
fn yes_must_be_said() {
    for (typed, expected) in
        [("y\n", true), ("YES\n", true), ("\n", false), ("no\n", false), ("hm\ny\n", true)]
    {
        let (mut terminal, _) = scripted(typed);
        assert_eq!(terminal.confirm("Sure?").unwrap(), expected, "{typed:?}");
    }
}

#[test]
fn the_end_of_the_input_is_no_answer() {
    for typed in ["", "maybe\n"] {
        let (mut terminal, _) = scripted(typed);
        assert!(matches!(terminal.confirm("Sure?"), Err(AskError::Ended)), "{typed:?}");
    }
}

#[test]
fn one_is_chosen_by_number_or_name() {
    for (typed, expected) in [("2\n", 1), ("BLUE\n", 2), ("\n", 0), ("0\n4\nmauve\n3\n", 2)] {
        let (mut terminal, shown) = scripted(typed);
        assert_eq!(terminal.choose("Colour", &options(), Some(0)).unwrap(), expected, "{typed:?}");
        assert!(
            shown.text().starts_with("   1  red\n   2  green\n   3  blue\nColour [1]: "),
            "{}",
            shown.text()
        );
    }
    let (mut terminal, shown) = scripted("\n1\n");
    assert_eq!(terminal.choose("Colour", &options(), None).unwrap(), 0);
    assert!(shown.text().contains("a number from 1 to 3"));
}

#[test]
fn letters_stand_for_words() {
    for (typed, expected) in [("y\n", 'y'), ("edit\n", 'e'), ("\n", 'n'), ("x\nNO\n", 'n')] {
        let (mut terminal, _) = scripted(typed);
        assert_eq!(terminal.letter("Run it?", &["yes", "edit", "no"], 'n').unwrap(), expected, "{typed:?}");
    }
}

#[test]
fn json_is_asked_for_until_it_is_right() {
    let object =
        |value: &Value| if value.is_object() { Ok(()) } else { Err("It must be an object.".to_owned()) };
    let (mut terminal, shown) = scripted("{oops\n[1]\n{\"a\":2}\n");
    assert_eq!(terminal.edit_json(&json!({"a": 1}), &object).unwrap(), json!({"a": 2}));
    assert!(shown.text().contains("That is no JSON"), "{}", shown.text());
    assert!(shown.text().contains("It must be an object."), "{}", shown.text());
    let (mut terminal, _) = scripted("\n");
    assert_eq!(terminal.edit_json(&json!({"a": 1}), &object).unwrap(), json!({"a": 1}));
}

#[test]
fn what_is_hidden_elsewhere_is_warned_of() {
    let (mut terminal, shown) = scripted("secret\n");
    assert_eq!(terminal.hidden("Password").unwrap(), "secret");
    assert!(shown.text().contains("will be seen"));
}

#[test]
fn nothing_a_server_says_reaches_the_terminal_as_it_is() {
    let (mut terminal, shown) = scripted("1\n");
    let hostile = "\x1b[2J\u{202e}".to_owned();
    terminal.say(&hostile).unwrap();
    terminal.warn(&hostile).unwrap();
    terminal.choose(&hostile, std::slice::from_ref(&hostile), None).unwrap();
    assert!(!shown.text().contains(['\x1b', '\u{202e}']), "{:?}", shown.text());
}

#[test]
fn lines_without_end_and_bytes_that_are_no_text_are_refused() {
    let (mut terminal, _) = scripted("x".repeat(MAX_LINE + 1));
    assert!(matches!(terminal.line("Name"), Err(AskError::Terminal(_))));
    let (mut terminal, _) = scripted(b"\xff\xfe\n".to_vec());
    assert!(matches!(terminal.line("Name"), Err(AskError::Terminal(_))));
}
