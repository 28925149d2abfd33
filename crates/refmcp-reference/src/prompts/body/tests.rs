//! The text of prompt files: messages, arguments, and what is said about mistakes.

use std::collections::BTreeMap;

use super::*;

/// The messages, with every argument filled in as its name in brackets.
fn filled(text: &str) -> Vec<(Role, String)> {
    let body = Body::parse(text, 1).unwrap();
    let values: BTreeMap<&str, String> =
        body.arguments().into_iter().map(|(name, _)| (name, format!("[{name}]"))).collect();
    let text_of = |message: PromptMessage| message.content.as_text().unwrap().to_owned();
    let messages = body.fill(|name| &values[name]).unwrap();
    messages.into_iter().map(|message| (message.role, text_of(message))).collect()
}

#[test]
fn text_is_one_message_of_the_user_unless_it_says_otherwise() {
    let (user, assistant) = (Role::User, Role::Assistant);
    for (text, expected) in [
        ("plain", vec![(user, "plain")]),
        ("\n  A {{ a }} and {{b}}{{a}}.\n\n", vec![(user, "A [a] and [b][a].")]),
        ("{{a}} ", vec![(user, "[a]")]),
        ("{{\na\n}}", vec![(user, "[a]")]),
        ("\\{{a}} {{a}}", vec![(user, "{{a}} [a]")]),
        ("{{role}}", vec![(user, "[role]")]),
        (
            "{{role \"user\"}}\nHello {{a}}\n{{role \"assistant\"}}\n\nYes?\n{{ role \"user\" }} More",
            vec![(user, "Hello [a]"), (assistant, "Yes?"), (user, "More")],
        ),
        ("First\n{{role \"assistant\"}}\nSecond", vec![(user, "First"), (assistant, "Second")]),
        ("a } b { c }} d", vec![(user, "a } b { c }} d")]),
    ] {
        let expected: Vec<(Role, String)> =
            expected.into_iter().map(|(role, text)| (role, text.to_owned())).collect();
        assert_eq!(filled(text), expected, "{text:?}");
    }
}

#[test]
fn faults_name_the_line_and_what_to_do() {
    let too_many = format!("{}{{{{role \"user\"}}}}x", "{{role \"user\"}}x\n".repeat(MAX_MESSAGES));
    for (text, line, word) in [
        ("", 5, "no text"),
        ("\n \n", 5, "no text"),
        ("a\nHello {{name", 6, "}}"),
        ("{{name\n\nand {{other}}", 5, "}}"),
        ("a\n\nHello {{}}", 7, "no argument"),
        ("{{two words}}", 5, "\\{{"),
        ("{{role \"system\"}}\nx", 5, "no other"),
        ("{{role user}}\nx", 5, "{{role \"user\"}}"),
        ("x\n{{role \"assistant\"}}\n", 6, "has no text"),
        ("{{role \"user\"}}\n{{role \"assistant\"}}\nx", 5, "has no text"),
        (&too_many, 105, "more than 100 messages"),
    ] {
        let error = Body::parse(text, 5).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {line}: ")) && error.contains(word), "{text:?}: {error}");
    }
}

#[test]
fn a_value_that_is_used_often_does_not_make_the_result_endless() {
    let body = Body::parse(&"{{a}}".repeat(1000), 1).unwrap();
    let (fits, too_large) = ("x".repeat(MAX_FILLED_BYTES / 1000), "x".repeat(MAX_FILLED_BYTES / 1000 + 1));
    assert!(body.fill(|_| &fits).is_ok());
    assert!(body.fill(|_| &too_large).is_err());
}
