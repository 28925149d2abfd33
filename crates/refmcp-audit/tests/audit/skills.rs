//! Rules about skills.

use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::exchange::{client, server};
use crate::script::{Example, Script};

const URI: &str = "skill://acme/refunds/SKILL.md";

fn capabilities(settings: Value) -> Value {
    json!({"resources": {}, "extensions": {"io.modelcontextprotocol/skills": settings}})
}

fn session() -> Script {
    session_with(capabilities(json!({"directoryRead": true})))
}

fn session_with(capabilities: Value) -> Script {
    Script::session("stdio", "2025-11-25", json!({}), capabilities)
}

fn file(uri: &str, size: u64) -> Value {
    json!({"uri": uri, "digest": format!("sha256:{}", "0a".repeat(32)), "size": size})
}

fn skill() -> Value {
    skill_with(json!({}))
}

fn skill_with(more: Value) -> Value {
    let mut skill = json!({
        "uri": URI, "frontmatter": {"name": "refunds", "description": "Refunds"},
        "resources": [file(URI, 5), file("skill://acme/refunds/a.md", 2)],
    });
    skill.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    skill
}

fn named(name: &str) -> Value {
    let uri = format!("skill://acme/{name}/SKILL.md");
    skill_with(json!({
        "uri": uri, "frontmatter": {"name": name, "description": "x"}, "resources": [file(&uri, 1)],
    }))
}

fn listed(skills: Value) -> Script {
    session().asks(1, "skills/list", json!({})).answers(1, json!({"skills": skills}))
}

fn entry(skill: Value) -> Script {
    listed(json!([skill]))
}

fn files(files: Value) -> Script {
    entry(skill_with(json!({"resources": files})))
}

fn got(uri: &str) -> Script {
    listed(json!([skill()])).asks(2, "skills/get", json!({"uri": uri}))
}

fn directory(children: Value) -> Script {
    session()
        .asks(1, "resources/directory/read", json!({"uri": "skill://acme/refunds"}))
        .answers(1, json!({"resources": children}))
}

fn child(uri: &str) -> Value {
    json!({"uri": uri, "name": "a"})
}

fn read(text: &str) -> Script {
    entry(skill())
        .asks(2, "resources/read", json!({"uri": URI}))
        .answers(2, json!({"contents": [{"uri": URI, "text": text}]}))
}

/// The list is the same as before.
fn listed_again(script: Script) -> Script {
    script.asks(3, "skills/list", json!({})).answers(3, json!({"skills": [skill()]}))
}

fn stateless(hints: Value) -> Script {
    let mut result = json!({"skills": []});
    result.as_object_mut().unwrap().extend(hints.as_object().unwrap().clone());
    Script::new("stdio")
        .discovered(capabilities(json!({})))
        .asks_alone(1, "skills/list", json!({}), json!({}))
        .completes(1, result)
}

fn resource(media_type: &str) -> Script {
    let resource = json!({"uri": URI, "name": "refunds", "mimeType": media_type});
    entry(skill()).asks(2, "resources/list", json!({})).answers(2, json!({"resources": [resource]}))
}

fn pages(second: Value) -> Script {
    session()
        .asks(1, "skills/list", json!({}))
        .answers(1, json!({"skills": [skill()], "nextCursor": "x"}))
        .asks(2, "skills/list", json!({"cursor": "x"}))
        .answers(2, json!({"skills": [second]}))
}

fn entry_examples() -> Vec<Example> {
    let elsewhere = skill_with(json!({
        "uri": "github://acme/refunds/SKILL.md", "resources": [file("github://acme/refunds/SKILL.md", 1)],
    }));
    let many: Vec<Value> =
        (0..513).map(|number| file(&format!("skill://acme/refunds/{number}"), 1)).collect();
    let many = [vec![file(URI, 1)], many].concat();
    vec![
        server(
            &rule::SKL_05,
            entry(skill()),
            vec![
                entry(skill_with(json!({"frontmatter": {"name": "refunds"}}))),
                entry(skill_with(json!({"frontmatter": null}))),
            ],
        ),
        server(&rule::SKL_06, entry(skill()), vec![entry(elsewhere)]),
        server(
            &rule::SKL_07,
            entry(named("a-1")),
            vec![
                entry(named("Refunds")),
                entry(named("a--b")),
                entry(skill_with(json!({"frontmatter": {"name": "other", "description": "x"}}))),
            ],
        ),
        server(
            &rule::SKL_08,
            entry(skill()),
            vec![entry(skill_with(json!({"uri": "skill://acme/refunds/README.md"})))],
        ),
        server(
            &rule::SKL_09,
            entry(named("a")),
            vec![{
                let uri = "skill://two words/refunds/SKILL.md";
                entry(skill_with(json!({"uri": uri, "resources": [file(uri, 1)]})))
            }],
        ),
        server(&rule::SKL_16, files(json!("dynamic")), vec![files(json!("all")), files(json!(null))]),
        server(
            &rule::SKL_18,
            entry(skill()),
            vec![files(json!([])), files(json!([file(URI, 1), file(URI, 1)]))],
        ),
        server(
            &rule::SKL_19,
            entry(skill()),
            vec![
                files(json!([file(URI, 1), file("skill://acme/other/a.md", 1)])),
                files(json!([file(URI, 1), file("skill://acme/refunds-2/a.md", 1)])),
            ],
        ),
        server(
            &rule::SKL_20,
            entry(skill()),
            vec![
                files(json!([{"uri": URI, "size": 1}])),
                files(json!([{"uri": URI, "size": 1, "digest": "sha256:0A"}])),
                files(json!([{"uri": URI, "digest": format!("sha256:{}", "0".repeat(64))}])),
            ],
        ),
        server(&rule::SKL_23, entry(skill()), vec![files(json!(many)), files(json!([file(URI, 17 << 20)]))]),
    ]
}

pub(crate) fn examples() -> Vec<Example> {
    let initialized = |capabilities| session_with(capabilities).asks(1, "ping", json!({}));
    let unknown = |method: &str, params: Value| session().asks(1, method, params).refuses(1, -32601);
    let root = json!({"uri": "skill://acme/refunds"});
    let only_declared = |capabilities| session_with(capabilities).asks(1, "skills/list", json!({}));
    let mut examples = vec![
        server(
            &rule::SKL_01,
            listed(json!([])),
            vec![unknown("skills/list", json!({})), unknown("skills/get", json!({"uri": URI}))],
        ),
        server(
            &rule::SKL_02,
            initialized(capabilities(json!({}))),
            vec![initialized(json!({"extensions": {"io.modelcontextprotocol/skills": {}}}))],
        ),
        server(&rule::SKL_03, directory(json!([])), vec![unknown("resources/directory/read", root.clone())]),
        client(
            &rule::SKL_04,
            only_declared(capabilities(json!({}))),
            vec![
                only_declared(json!({"resources": {}})),
                session_with(capabilities(json!({}))).asks(1, "resources/directory/read", root),
            ],
        ),
        server(&rule::SKL_12, resource("text/markdown"), vec![resource("text/plain")]),
        server(&rule::SKL_21, read("12345"), vec![listed_again(read("123456"))]),
        server(
            &rule::SKL_26,
            stateless(json!({"ttlMs": 1, "cacheScope": "public"})),
            vec![stateless(json!({})), stateless(json!({"ttlMs": 1}))],
        ),
        server(&rule::SKL_29, pages(named("other")), vec![pages(skill()), listed(json!([skill(), skill()]))]),
        server(
            &rule::SKL_30,
            got(URI).answers(2, json!({"skill": skill()})),
            vec![listed_again(got(URI).refuses(2, -32602))],
        ),
        client(&rule::SKL_31, got(URI), vec![got("skill://acme/refunds")]),
        server(
            &rule::SKL_32,
            got(URI).answers(2, json!({"skill": skill()})),
            vec![got(URI).answers(2, skill())],
        ),
        server(
            &rule::SKL_33,
            directory(json!([child("skill://acme/refunds/a.md")])),
            vec![
                directory(json!([child("skill://acme/refunds/b/a.md")])),
                directory(json!([child("skill://acme/other")])),
            ],
        ),
    ];
    examples.extend(entry_examples());
    examples
}

#[test]
fn a_skill_that_may_have_changed_breaks_nothing() {
    for script in [read("123456"), got(URI).refuses(2, -32602)] {
        let judged = script.judge();
        assert_eq!(judged.broken().count(), 0, "{:?}", judged.broken().collect::<Vec<_>>());
    }
}
