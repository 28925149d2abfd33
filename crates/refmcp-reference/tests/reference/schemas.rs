//! The schemas of all tools, in the words that every reader of schemas knows.

use refmcp_reference::{Options, Profile, server};
use refmcp_server::Revision;
use serde_json::{Value, json};

use crate::client::Client;

/// Keywords whose value is a schema, a list of schemas, or schemas by name.
const ONE: [&str; 6] = ["items", "additionalProperties", "not", "if", "then", "else"];
const LISTED: [&str; 4] = ["oneOf", "anyOf", "allOf", "prefixItems"];
const NAMED: [&str; 3] = ["properties", "patternProperties", "$defs"];

/// Everything that a stranger's program may stumble over in a schema, with the way to it.
fn stumbles(schema: &Value, way: &str) -> Vec<String> {
    let mut found = Vec::new();
    let has = |keyword: &str| schema.get(keyword).is_some();
    if schema.get("type").is_some_and(|kind| !kind.is_string()) {
        found.push(format!("{way}: the type is not plain"));
    }
    // What an `if` asks for is no description of a value.
    if ["oneOf", "const", "enum"].into_iter().any(has) && !has("type") && !way.contains("/if") {
        found.push(format!("{way}: values or alternatives without a type"));
    }
    if schema.get("default").is_some_and(Value::is_null) {
        found.push(format!("{way}: null for a default"));
    }
    let ones = ONE.iter().filter_map(|keyword| Some((keyword.to_string(), schema.get(keyword)?)));
    let listed = LISTED.iter().flat_map(|keyword| {
        let items = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
        items.enumerate().map(move |(number, item)| (format!("{keyword}/{number}"), item))
    });
    let named = NAMED.iter().flat_map(|keyword| {
        let items = schema.get(keyword).and_then(Value::as_object).into_iter().flatten();
        items.map(move |(name, item)| (format!("{keyword}/{name}"), item))
    });
    for (step, inner) in ones.chain(listed).chain(named) {
        found.extend(stumbles(inner, &format!("{way}/{step}")));
    }
    found
}

#[tokio::test]
async fn every_tool_can_be_read_by_strangers() {
    for profile in Profile::ALL {
        let server = server(Options { profile, ..Options::default() }).unwrap();
        for revision in Revision::ALL {
            let rules = revision.rules();
            let mut client = Client::new(&server, revision.as_str()).await;
            let tools = client.list("tools").await;
            assert!(tools.len() > 10, "{profile:?} {revision}");
            for tool in &tools {
                let place = format!("{profile:?} {revision} {}", tool["name"]);
                // Before tools had titles, their annotations did, and before that there were none.
                let (title, older) = (tool.get("title"), tool["annotations"].get("title"));
                assert_eq!(title.is_some_and(Value::is_string), rules.titles, "{place}");
                let in_annotations = !rules.titles && rules.tool_annotations;
                assert_eq!(older.is_some_and(Value::is_string), in_annotations, "{place}");
                assert!(tool["description"].is_string(), "{place}");
                assert_eq!(tool["inputSchema"]["type"], "object", "{place}");
                assert!(tool["inputSchema"]["properties"].is_object(), "{place}");
                for schema in ["inputSchema", "outputSchema"] {
                    let found = tool.get(schema).map(|found| stumbles(found, schema)).unwrap_or_default();
                    assert_eq!(found, Vec::<String>::new(), "{place}");
                }
            }
        }
    }
}

#[test]
fn what_strangers_stumble_over_is_found() {
    let found = |schema: Value| stumbles(&schema, "").len();
    assert_eq!(found(json!({ "properties": { "a": { "type": ["string", "null"], "default": null } } })), 2);
    assert_eq!(found(json!({ "oneOf": [{ "const": 1 }, { "type": "integer", "enum": [2] }] })), 2);
    assert_eq!(found(json!({ "type": "array", "items": { "enum": ["a"] } })), 1);
    assert_eq!(found(json!({ "type": "string", "oneOf": [{ "type": "string", "const": "a" }] })), 0);
}
