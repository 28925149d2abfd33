//! What is suggested, from what two servers catalog.

use std::sync::Arc;

use refmcp_client::model::{Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
use serde_json::{Value, json};

use super::*;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn catalogs(used: Option<&str>) -> Catalogs {
    let schema = json!({
        "type": "object",
        "properties": {
            "units": {"enum": ["metric", "imperial"]},
            "deep": {"type": "boolean"},
            "message": {"type": "string"},
        },
        "required": ["message"],
    });
    let tool = |name: &str| read::<Tool>(json!({"name": name, "inputSchema": schema.clone()}));
    let argument = |name: &str| read::<PromptArgument>(json!({"name": name}));
    let mut prompt: Prompt = read(json!({"name": "review"}));
    prompt.arguments = Some(vec![argument("code"), argument("language")]);
    let one = Catalog {
        tools: vec![tool("echo"), tool("sum")],
        resources: vec![read::<Resource>(json!({"uri": "memo://a", "name": "a"}))],
        templates: vec![read::<ResourceTemplate>(
            json!({"uriTemplate": "memo://{shelf}/{name}", "name": "memos"}),
        )],
        prompts: vec![prompt],
        models: vec!["gpt-4".to_owned(), "claude-v2".to_owned()],
    };
    let two = Catalog { tools: vec![tool("echo"), tool("evil\u{1b}[2J")], ..Catalog::default() };
    Catalogs {
        servers: vec![("one".to_owned(), Arc::new(one)), ("two".to_owned(), Arc::new(two))],
        absent: vec!["gone".to_owned()],
        configured: ["gone", "known"].map(str::to_owned).to_vec(),
        used: used.map(str::to_owned),
    }
}

fn texts(typed: &str, used: Option<&str>) -> Vec<String> {
    suggest(typed, &catalogs(used)).words.into_iter().map(|word| word.text).collect()
}

#[test]
fn words_are_completed_from_what_is_offered() {
    let cases: [(&str, Option<&str>, &[&str]); 27] = [
        ("too", None, &["tools"]),
        ("model c", None, &["claude-v2"]),
        ("metadata o", None, &["one"]),
        ("su", None, &["subscribe", "sum"]),
        ("ec", None, &[]),
        ("ec", Some("two"), &["echo"]),
        ("one.", None, &["one.echo", "one.sum"]),
        ("call s", None, &["sum"]),
        ("sum ", None, &["deep=", "message=", "units="]),
        ("sum message=x u", None, &["units="]),
        ("sum message=x ", None, &["deep=", "units="]),
        ("call one.sum units=", None, &["units=metric", "units=imperial"]),
        ("sum units=i", None, &["units=imperial"]),
        ("sum deep=t", None, &["deep=true"]),
        ("echo ", None, &[]),
        ("echo m", Some("one"), &["message="]),
        ("/", None, &["/review", "/one.review"]),
        ("/review c", None, &["code="]),
        ("prompt re", None, &["review"]),
        ("read mem", None, &["memo://a", "memos"]),
        ("read memos ", None, &["shelf=", "name="]),
        ("read memos shelf=a ", None, &["name="]),
        ("subscribe m", None, &["memo://a"]),
        ("level no", None, &["notice"]),
        ("use t", None, &["two"]),
        ("connect ", None, &["gone", "known"]),
        ("unknown x", None, &[]),
    ];
    for (typed, used, expected) in cases {
        let mut found = texts(typed, used);
        let mut expected: Vec<String> = expected.iter().map(|word| (*word).to_owned()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{typed:?} {used:?}");
    }
}

#[test]
fn values_of_prompts_and_templates_are_the_servers_to_know() {
    let ask = suggest("/one.review code='a b' language=ru", &catalogs(None)).ask.unwrap();
    let context = vec![("code".to_owned(), "a b".to_owned())];
    let expected = Ask {
        server: "one".to_owned(),
        of: CompletionRef::Prompt(PromptReference::new("review")),
        argument: "language".to_owned(),
        prefix: "ru".to_owned(),
        context,
    };
    assert_eq!(ask, expected);
    let ask = suggest("read memos shelf=", &catalogs(None)).ask.unwrap();
    assert_eq!(ask.of, CompletionRef::Resource(ResourceTemplateReference::new("memo://{shelf}/{name}")));
    assert_eq!(suggest("read memos other=", &catalogs(None)).ask, None);
    assert_eq!(suggest("sum message=", &catalogs(None)).ask, None);
}

#[test]
fn the_word_that_is_replaced_is_found() {
    for (typed, start, partial, before) in [
        ("", 0, "", 0),
        ("ab", 0, "ab", 0),
        ("ab ", 3, "", 1),
        ("ab cd", 3, "cd", 1),
        ("ab 'c d", 3, "c d", 1),
        ("ab k='c d' e", 11, "e", 2),
        ("ä ö", 3, "ö", 1),
        ("a \"b c", 2, "b c", 1),
    ] {
        let (words, at, rest) = cut(typed);
        assert_eq!((at, rest.as_str(), words.len()), (start, partial, before), "{typed:?}");
    }
}

#[test]
fn files_follow_an_at_sign() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["alpha.txt", "also", ".hidden"] {
        std::fs::write(folder.path().join(file), "").unwrap();
    }
    std::fs::create_dir(folder.path().join("altar")).unwrap();
    let prefix = format!("{}/al", folder.path().display());
    let found = suggest(&format!("sum message=@{prefix}"), &catalogs(None));
    assert_eq!(found.file, Some(("message=@".to_owned(), prefix.clone())));
    let words = files("message=@", &prefix);
    let place = folder.path().display();
    let texts: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
    let expected = ["alpha.txt", "also", "altar/"].map(|name| format!("message=@{place}/{name}"));
    assert_eq!(texts, expected);
    assert_eq!(words.iter().map(|word| word.is_open).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn what_could_do_something_to_a_terminal_is_not_suggested() {
    let found = suggest("two.e", &catalogs(None));
    let harmless = found.words.into_iter().filter(|word| is_harmless(&word.text)).collect::<Vec<_>>();
    assert_eq!(harmless, [Candidate::new("two.echo", "")]);
    let quoted = pair(Candidate::new("goal=fewer dependencies", ""));
    assert_eq!(
        (quoted.display.as_str(), quoted.replacement.as_str()),
        ("goal=fewer dependencies", "'goal=fewer dependencies' ")
    );
}
