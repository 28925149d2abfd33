//! Lists, when some of them are missing or refused; and single things, whole.

use serde_json::{Value, json};

use crate::{User, scripted};

const TOOLS: &str = r#""result":{"tools":[{"name":"one","description":"First line\nSecond line","inputSchema":{"type":"object","required":["b"],"properties":{"b":{"type":"string","description":"Which one"}}},"annotations":{"readOnlyHint":true}}]}"#;

#[test]
fn what_can_be_listed_is_listed() {
    let user = User::new();
    let refused = r#""error":{"code":-32000,"message":"no prompts today"}"#;
    let server = scripted(
        r#"{"tools":{},"resources":{},"prompts":{}}"#,
        &[
            ("tools/list", TOOLS),
            ("resources/list", r#""result":{"resources":[{"uri":"a:b","name":"ab"}]}"#),
            ("prompts/list", refused),
        ],
    );
    let ended = user.with_script(&["list"], &server);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.out.contains("TOOLS\none\n") && ended.out.contains("RESOURCES\nURI"), "{ended:?}");
    assert!(ended.err.contains("refmcp: prompts: no prompts today (-32000)"), "{ended:?}");
    let missing =
        "refmcp: templates: the server declares resources, but does not know resources/templates/list";
    assert!(ended.err.contains(missing), "{ended:?}");
    let ended = user.with_script(&["list", "-o", "json"], &server);
    let document: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(document["tools"][0]["name"], "one");
    let error = json!({ "code": -32000, "message": "no prompts today" });
    assert_eq!((ended.code, &document["errors"]["prompts"]), (1, &error));
    assert_eq!(document["errors"]["resourceTemplates"]["code"], -32601);

    // A list that is not there at all is no failure, and one alone is.
    let server = scripted(r#"{"tools":{},"prompts":{}}"#, &[("tools/list", TOOLS)]);
    let ended = user.with_script(&["list"], &server);
    assert_eq!((ended.code, ended.err.contains("does not know prompts/list")), (0, true), "{ended:?}");
    let ended = user.with_script(&["list"], &scripted(r#"{"prompts":{}}"#, &[("prompts/list", refused)]));
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{ended:?}");
}

/// A script that reads the list must not take the remark for an item.
#[test]
fn an_empty_list_is_empty_where_programs_read_it() {
    let user = User::new();
    let server = scripted(
        r#"{"tools":{},"models":{}}"#,
        &[("tools/list", r#""result":{"tools":[]}"#), ("models/list", r#""result":{"models":[]}"#)],
    );
    for what in ["tools", "models"] {
        let ended = user.with_script(&["list", what], &server);
        let told = (ended.code, ended.out.as_str(), ended.err.as_str());
        assert_eq!(told, (0, "", format!("no {what}\n").as_str()));
        let ended = user.with_script(&["list", what, "-o", "json"], &server);
        assert_eq!(serde_json::from_str::<Value>(&ended.out).unwrap(), json!({ what: [] }), "{ended:?}");
    }
}

#[test]
fn undeclared_capabilities_are_reported() {
    let user = User::new();
    let server = scripted("{}", &[]);
    for (words, what) in [
        (&["list", "tools"][..], "declares no tools"),
        (&["list", "prompts"], "declares no prompts"),
        (&["list", "resources"], "declares no resources"),
        (&["list", "templates"], "declares no resources"),
        (&["call", "x"], "declares no tools"),
        (&["read", "a:b"], "declares no resources"),
        (&["prompt", "x"], "declares no prompts"),
        (&["complete", "--prompt", "x", "a="], "declares no completions"),
        (&["watch", "a:b"], "a:b cannot be watched: the server declares no resources"),
    ] {
        let ended = user.with_script(words, &server);
        assert_eq!(ended.code, 1, "{words:?}: {ended:?}");
        assert!(ended.err.contains(what), "{words:?}: {ended:?}");
    }
    let server = scripted(r#"{"tools":{}}"#, &[("tools/list", TOOLS)]);
    let ended = user.with_script(&["list", "tools", "--log-level", "debug"], &server);
    assert!(ended.code == 0 && ended.out.starts_with("one\n"), "{ended:?}");
    assert!(ended.err.contains("--log-level has no effect: the server declares no logging"), "{ended:?}");
    let contents = r#""result":{"contents":[{"uri":"a:b","text":"x"}]}"#;
    let unsubscribed = scripted(r#"{"resources":{}}"#, &[("resources/read", contents)]);
    let ended = user.with_script(&["watch", "a:b"], &unsubscribed);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{ended:?}");
    assert!(
        ended.err.contains("the server declares no subscriptions to resources: Method not found"),
        "{ended:?}"
    );
    let ended = user.with_script(&["raw", "prompts/list"], &server);
    assert_eq!(ended.err, "refmcp: Method not found (-32601)\n", "raw says what the server says");
}

#[test]
fn one_thing_is_shown_whole() {
    let user = User::new();
    let server = scripted(r#"{"tools":{}}"#, &[("tools/list", TOOLS)]);
    let short = user.with_script(&["list", "tools"], &server).out;
    assert!(!short.contains("Second line"), "{short}");
    for words in [&["list", "tools", "one"][..], &["list", "all", "one"]] {
        let whole = user.with_script(words, &server).out;
        for part in
            ["First line\n    Second line", "b:  a text. Which one", "is read-only", "\"required\": ["]
        {
            assert!(whole.contains(part), "{words:?}: {part}: {whole}");
        }
    }
    let ended = user.with_script(&["list", "tools", "one", "-o", "json"], &server);
    assert!(ended.out.starts_with("{\n  \"tools\": [\n    {\n      \"name\": \"one\""), "{ended:?}");
    let ended = user.with_script(&["list", "tools", "two"], &server);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""));
    assert!(ended.err.contains("has no tool \"two\"; it has one"), "{ended:?}");
    let ended = user.with_stdio(&["list", "resources", "file:///notes/todo.txt"]);
    assert!(ended.out.starts_with("file:///notes/todo.txt\n    What is left to do\n"), "{ended:?}");
}

#[test]
fn models_are_listed_whole_and_refused_like_the_rest() {
    let user = User::new();
    let models = r#""result":{"active":"m1","models":[{"name":"m1","description":"First line\nSecond line","contextLength":8},{"name":"m2","z":1,"a":2}]}"#;
    let server = scripted(r#"{"models":{}}"#, &[("models/list", models)]);
    let ended = user.with_script(&["list", "models", "m1"], &server);
    let whole =
        "m1\n    First line\n    Second line\n  facts\n    active  yes\n    context  8 tokens\n".to_owned();
    assert_eq!((ended.code, ended.out), (0, whole), "{}", ended.err);
    let ended = user.with_script(&["list", "models", "m2", "-o", "json"], &server);
    let document: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(document, json!({ "models": [{ "name": "m2", "z": 1, "a": 2 }] }));
    let ended = user.with_script(&["list", "models", "m3"], &server);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.err.contains("model") && ended.err.contains("m3"), "{ended:?}");

    let refused = r#""error":{"code":-32000,"message":"no models today"}"#;
    let answers = [("tools/list", TOOLS), ("models/list", refused)];
    let server = scripted(r#"{"tools":{},"models":{}}"#, &answers);
    let ended = user.with_script(&["list", "-o", "json"], &server);
    let document: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((ended.code, &document["tools"][0]["name"]), (1, &json!("one")), "{ended:?}");
    assert_eq!(document["errors"]["models"], json!({ "code": -32000, "message": "no models today" }));
    assert!(ended.err.contains("refmcp: models: no models today (-32000)"), "{ended:?}");
}

#[test]
fn an_error_in_json_has_what_the_server_answered_whatever_is_said_beside_it() {
    let user = User::new();
    for (capabilities, words) in [
        ("{}", &["list", "tools", "-o", "json"][..]),
        (r#"{"tools":{}}"#, &["list", "tools", "-o", "json"]),
        ("{}", &["watch", "a:b", "-o", "json"]),
    ] {
        let ended = user.with_script(words, &scripted(capabilities, &[]));
        let error: Value = serde_json::from_str(ended.err.lines().last().unwrap()).unwrap();
        assert_eq!(error["error"]["rpc"]["code"], -32601, "{words:?}: {ended:?}");
    }
}
