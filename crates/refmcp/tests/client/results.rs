//! Results: once, in the server's own words, and alone on standard output.

use crate::{User, scripted};

fn tool(user: &User, words: &[&str], result: &str) -> crate::support::Ended {
    let list = r#""result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
    let call = format!(r#""result":{result}"#);
    let server = scripted(r#"{"tools":{}}"#, &[("tools/list", list), ("tools/call", &call)]);
    let words: Vec<&str> = ["call", "t"].iter().chain(words).copied().collect();
    user.with_script(&words, &server)
}

#[test]
fn structured_content_that_repeats_the_text_is_not_printed_again() {
    let user = User::new();
    for (result, out) in [
        (
            r#"{"content":[{"type":"text","text":"{\"b\": 1, \"a\": 2.0}"}],"structuredContent":{"a":2,"b":1}}"#,
            "{\"b\": 1, \"a\": 2.0}\n",
        ),
        (r#"{"content":[{"type":"text","text":"hello"}],"structuredContent":{"result":"hello"}}"#, "hello\n"),
        (
            r#"{"content":[{"type":"text","text":"1"},{"type":"text","text":"b"}],"structuredContent":{"result":[1,"b"]}}"#,
            "1\nb\n",
        ),
        (r#"{"content":[],"structuredContent":{"a":1}}"#, "{\n  \"a\": 1\n}\n"),
        (
            r#"{"content":[{"type":"text","text":"one"}],"structuredContent":{"a":1}}"#,
            "one\n{\n  \"a\": 1\n}\n",
        ),
        (r#"{"content":[{"type":"text","text":"line\n"}]}"#, "line\n"),
    ] {
        let ended = tool(&user, &[], result);
        assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (0, out, ""), "{result}");
    }
}

#[test]
fn only_the_result_is_on_standard_output() {
    let user = User::new();
    let ended = tool(&user, &[], r#"{"isError":true,"content":[{"type":"text","text":"broken"}]}"#);
    assert_eq!(
        (ended.code, ended.out.as_str(), ended.err.as_str()),
        (5, "broken\n", "the tool says it failed:\n")
    );
    let ended = tool(&user, &[], r#"{"content":[]}"#);
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (0, "", "the tool returned nothing\n"));
    let server = scripted(
        r#"{"resources":{},"prompts":{}}"#,
        &[
            ("resources/read", r#""result":{"contents":[]}"#),
            ("prompts/list", r#""result":{"prompts":[{"name":"p"}]}"#),
            ("prompts/get", r#""result":{"messages":[]}"#),
        ],
    );
    for (words, err) in
        [(["read", "a:b"], "the resource is empty\n"), (["prompt", "p"], "the prompt has no messages\n")]
    {
        let ended = user.with_script(&words, &server);
        assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (0, "", err), "{words:?}");
    }
}

#[test]
fn members_keep_the_order_of_the_server() {
    let user = User::new();
    let ended =
        tool(&user, &["-o", "json"], r#"{"z":1.0,"content":[],"structuredContent":{"b":1,"a":[2e1]}}"#);
    let expected = "{\n  \"z\": 1.0,\n  \"content\": [],\n  \"structuredContent\": {\n    \"b\": 1,\n    \"a\": [\n      2e1\n    ]\n  }\n}\n";
    assert_eq!(ended.out, expected, "{ended:?}");
    let server = scripted(
        r#"{"resources":{},"prompts":{},"completions":{}}"#,
        &[
            ("resources/read", r#""result":{"z":1,"contents":[{"text":"x","uri":"a:b"}]}"#),
            ("prompts/list", r#""result":{"prompts":[{"name":"p"}]}"#),
            ("prompts/get", r#""result":{"z":1,"messages":[],"description":"d"}"#),
            ("completion/complete", r#""result":{"z":1,"completion":{"total":1,"values":["v"]}}"#),
        ],
    );
    for words in [&["read", "a:b"][..], &["prompt", "p"], &["complete", "--prompt", "p", "a="]] {
        let words: Vec<&str> = words.iter().chain(&["-o", "json"]).copied().collect();
        let ended = user.with_script(&words, &server);
        assert!(ended.out.starts_with("{\n  \"z\": 1,\n"), "{words:?}: {ended:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn json_at_a_terminal_has_no_characters_that_control_it() {
    let user = User::new();
    let text = "a\u{9b}2J\u{7f}\u{202e}b";
    let answer = format!(r#""result":{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
    let tools = r#""result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
    let server = crate::scripted(r#"{"tools":{}}"#, &[("tools/list", tools), ("tools/call", &answer)]);
    for format in ["json", "jsonl"] {
        let words = ["call", "t", "--yes", "-o", format, "--", "sh", "-c", &server];
        let mut terminal = crate::support::Terminal::start(&user.command(&words), 200);
        terminal.expect(r"a\u009b2J\u007f\u202eb");
        assert!(terminal.ended().success());
        // Programs get what the server wrote.
        assert!(user.run(&words).out.contains(text));
    }
}

#[test]
fn raw_parameters_that_are_no_json_are_told_with_their_place() {
    let ended = User::new().with_stdio(&["raw", "tools/list", "{\"a\": nope}"]);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{ended:?}");
    assert!(ended.err.contains("the parameters are no JSON: expected ident at line 1 column 8"), "{ended:?}");
}
