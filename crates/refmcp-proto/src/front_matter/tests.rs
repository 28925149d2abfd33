//! Tests of front matter.

use serde_json::json;

use super::*;

fn json_of(yaml: &str) -> Result<Json, FrontMatterError> {
    read(yaml, FIRST_LINE, 8).and_then(|node| node.map_or(Ok(Json::Null), Node::into_json))
}

#[test]
fn a_file_has_two_parts() {
    let parts = split("---\nname: a\n---\n# Body\n---\nmore\n").unwrap();
    assert_eq!((parts.yaml, parts.body), ("name: a\n", "# Body\n---\nmore\n"));
    let parts = split("---\r\nname: a\r\n---\r\nBody").unwrap();
    assert_eq!((parts.yaml, parts.body), ("name: a\r\n", "Body"));
    assert_eq!(split("---\n---").unwrap(), Parts { yaml: "", body: "" });
    for text in ["", "# Body", "---", "--- \n", "---\nname: a\n", "\n---\na: b\n---\n", "\u{feff}---\n---\n"]
    {
        assert_eq!(split(text).unwrap_err().line, 1, "{text:?}");
    }
}

#[test]
fn scalars_are_those_of_the_core_schema() {
    for (yaml, expected) in [
        ("a: text", json!("text")),
        ("a: 'true'", json!("true")),
        ("a: true", json!(true)),
        ("a: FALSE", json!(false)),
        ("a: yes", json!("yes")),
        ("a:", json!(null)),
        ("a: ~", json!(null)),
        ("a: \"\"", json!("")),
        ("a: 12", json!(12)),
        ("a: +12", json!(12)),
        ("a: -3", json!(-3)),
        ("a: 0x1F", json!(31)),
        ("a: 0o17", json!(15)),
        ("a: 18446744073709551615", json!(u64::MAX)),
        ("a: 1.5e3", json!(1500.0)),
        ("a: .5", json!(0.5)),
        ("a: 1.0.2", json!("1.0.2")),
        ("a: 1e", json!("1e")),
        ("a: 2026-01-02", json!("2026-01-02")),
        ("a: >\n  two\n  lines\n", json!("two lines\n")),
        ("a: [1, {b: c}]", json!([1, { "b": "c" }])),
    ] {
        assert_eq!(json_of(yaml).unwrap(), json!({ "a": expected }), "{yaml}");
    }
    assert_eq!(json_of("").unwrap(), Json::Null);
}

#[test]
fn what_readers_would_differ_on_is_refused_with_its_line() {
    for (yaml, line) in [
        ("a: 1\na: 2", 3),
        ("a: &x 1", 2),
        ("a: *x", 2),
        ("a: !!str 1", 2),
        ("a: .inf", 2),
        ("a: 99999999999999999999", 2),
        ("? [a]\n: b", 2),
        ("~: b", 2),
        ("a: 1\n...\n---\nb: 2", 4),
        ("a: 1\nb: [", 3),
    ] {
        let error = json_of(yaml).unwrap_err();
        assert!(error.line >= line && error.line <= line + 1, "{yaml:?}: {error}");
    }
    let deep = format!("a: {}{}", "[".repeat(9), "]".repeat(9));
    assert!(json_of(&deep).unwrap_err().what.contains("too deeply"));
}
