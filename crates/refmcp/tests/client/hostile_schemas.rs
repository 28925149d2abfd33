//! Tools whose schemas would take years to apply.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{User, scripted};

/// A schema whose definitions each apply the one before ten times.
fn endless() -> Value {
    let mut definitions = json!({"0": {"type": "object"}});
    for level in 1..=12 {
        let below = json!({"$ref": format!("#/$defs/{}", level - 1)});
        definitions[level.to_string()] = json!({"allOf": vec![below; 10]});
    }
    json!({"type": "object", "$ref": "#/$defs/12", "$defs": definitions})
}

/// A server whose tool has these schemas, and returns data.
fn server(input: &Value, output: &Value) -> String {
    let tool = json!({"name": "t", "inputSchema": input, "outputSchema": output});
    let tools = format!(r#""result":{{"tools":[{tool}]}}"#);
    let result = r#""result":{"content":[],"structuredContent":{"n":1}}"#;
    scripted(r#"{"tools":{}}"#, &[("tools/list", &tools), ("tools/call", result)])
}

#[test]
fn a_tool_whose_schema_is_too_much_work_is_called_unchecked() {
    let user = User::new();
    let any = json!({"type": "object"});
    for (input, output, note) in [
        (&endless(), &any, "the arguments are not checked against the schema of the tool"),
        (&any, &endless(), "the output schema of t, and its output is not checked"),
    ] {
        let ended = user.with_script(&["call", "t", "--timeout", "20"], &server(input, output));
        assert_eq!((ended.code, ended.out.as_str()), (0, "{\n  \"n\": 1\n}\n"), "{ended:?}");
        assert!(ended.err.contains(note) && ended.err.contains("more than 100000 steps"), "{ended:?}");
        assert!(ended.took < Duration::from_secs(15), "{ended:?}");
    }
    let ended = user.with_script(&["list", "tools"], &server(&endless(), &endless()));
    assert_eq!(ended.code, 0, "{ended:?}");
}
