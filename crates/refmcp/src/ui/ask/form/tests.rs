//! Tests of forms, with answers that were written down before.

use refmcp_proto::model::{BooleanSchema, MultiChoiceSchema, NumberSchema, SingleChoiceSchema, StringSchema};
use serde_json::json;

use super::*;
use crate::ui::terminal::scripted::scripted;

fn every_field() -> ElicitFormParams {
    let colours = ["red", "green"].into_iter().collect::<Choices>();
    let sizes = Choices::titled([("s", "Small"), ("l", "Large")]);
    let tags = Choices::Named {
        values: ["x", "y", "z"].map(str::to_owned).to_vec(),
        names: ["Ex", "Why"].map(str::to_owned).to_vec(),
    };
    let form = FormSchema::new()
        .required("name", StringSchema::new().title("Your name").min_length(2u64).max_length(5u64))
        .optional("mail", StringSchema::new().format(StringFormat::Email).description("Where to write to"))
        .required("age", NumberSchema::integer().minimum(18).maximum(99))
        .optional("ratio", NumberSchema::number().with_default(0.5))
        .optional("ok", BooleanSchema::new().with_default(true))
        .required("colour", SingleChoiceSchema::new(colours))
        .optional("size", SingleChoiceSchema::new(sizes).with_default("l"))
        .optional("tags", MultiChoiceSchema::new(tags).max_items(2u64));
    ElicitFormParams::new("Please register.", form)
}

fn filled(params: &ElicitFormParams, typed: &str) -> (ElicitResult, String) {
    let (mut terminal, screen) = scripted(typed);
    let result = fill_form(&mut terminal, "shop", params).unwrap();
    (result, screen.text())
}

fn content(result: &ElicitResult) -> Value {
    result.content.clone().map_or(Value::Null, Value::Object)
}

#[test]
fn every_kind_of_field_is_filled_in() {
    let (result, shown) = filled(&every_field(), "\nAda\na@b\n18\n0.25\nn\ngreen\nsmall\n1,3\n\n");
    assert_eq!(result.action, ElicitAction::Accept);
    assert_eq!(
        content(&result),
        json!({"name": "Ada", "mail": "a@b", "age": 18, "ratio": 0.25, "ok": false, "colour": "green",
               "size": "s", "tags": ["x", "z"]})
    );
    assert!(shown.starts_with("The server shop asks:\nPlease register.\n"), "{shown}");
    for part in [
        "Your name: ",
        "Where to write to (a mail address, may be left out with -)",
        "ok [yes]: ",
        "a whole number, 18 to 99",
        "   1  Small  (s)",
        "   2  Why  (y)\n   3  z\n",
        "size [l]: ",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn defaults_are_taken_and_optional_fields_left_out() {
    let (result, _) = filled(&every_field(), "y\nAda\n\n20\n\n\n1\n\n\ny\n");
    assert_eq!(
        content(&result),
        json!({"name": "Ada", "age": 20, "ratio": 0.5, "ok": true, "colour": "red", "size": "l"})
    );
    let (result, _) = filled(&every_field(), "y\nAda\n-\n20\n-\n-\n1\n-\n-\ny\n");
    assert_eq!(content(&result), json!({"name": "Ada", "age": 20, "colour": "red"}));
}

#[test]
fn wrong_answers_are_asked_for_again_with_the_reason() {
    let typed = "y\n\nA\nAda\nada\na@b\nold\n17\n18.5\n18\n\nmaybe\ny\n9\nred\n\nx,y,z\nx\n\n";
    let (result, shown) = filled(&every_field(), typed);
    assert_eq!(result.action, ElicitAction::Accept, "{shown}");
    for reason in [
        "an answer is required",
        "must have at least 2 characters",
        "is no email",
        "\"old\" is no number",
        "must be at least 18",
        "must be a whole number",
        "neither yes nor no",
        "none of the choices",
        "must have at most 2 items",
    ] {
        assert!(shown.contains(reason), "{reason} in {shown}");
    }
}

#[test]
fn answers_can_be_changed_before_they_are_sent() {
    let params = ElicitFormParams::new("Name?", FormSchema::new().required("name", StringSchema::new()));
    let (result, shown) = filled(&params, "y\nAda\nedit\nGrace\nyes\n");
    assert_eq!(content(&result), json!({"name": "Grace"}));
    assert!(shown.contains("name [Ada]: "), "{shown}");
}

#[test]
fn a_form_can_be_declined_cancelled_or_left() {
    let params = ElicitFormParams::new("Name?", FormSchema::new().required("name", StringSchema::new()));
    for (typed, action) in [
        ("n\n", ElicitAction::Decline),
        ("cancel\n", ElicitAction::Cancel),
        ("", ElicitAction::Cancel),
        ("y\n", ElicitAction::Cancel),
        ("y\nAda\nno\n", ElicitAction::Decline),
        ("y\nAda\nc\n", ElicitAction::Cancel),
    ] {
        let (result, _) = filled(&params, typed);
        assert_eq!((result.action, result.content), (action, None), "{typed:?}");
    }
}

#[test]
fn a_form_that_cannot_be_satisfied_is_declined() {
    let mut form = FormSchema::new();
    form.required.push("ghost".to_owned());
    let (result, shown) = filled(&ElicitFormParams::new("Boo", form), "y\nn\n");
    assert_eq!(result.action, ElicitAction::Decline);
    assert!(shown.contains("field \"ghost\" is required"), "{shown}");
}
