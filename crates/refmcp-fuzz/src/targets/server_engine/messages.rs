//! Messages of a client, drafted from the input.

use refmcp_proto::model::keys;
use refmcp_proto::revision::Revision;
use refmcp_testkit::messages::initialize_params;
use serde_json::{Value, json};

use crate::input::Input;

const METHODS: [&str; 18] = [
    "tools/call",
    "tools/call",
    "tools/call",
    "tools/list",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "prompts/list",
    "completion/complete",
    "ping",
    "logging/setLevel",
    "server/discover",
    "subscriptions/listen",
    "models/list",
    "no/such",
];

const TOOLS: [&str; 15] = [
    "echo",
    "fail",
    "error",
    "never",
    "progress",
    "log",
    "blocks",
    "structured_list",
    "ask",
    "ask_many",
    "ask_roots",
    "ask_url",
    "ask_twice",
    "ask_forever",
    "ask_by_task",
];

/// A request of a client that is not sent yet.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) id: Value,
    pub(super) method: String,
    /// The revision that it names in its `_meta`.
    pub(super) revision: Option<Revision>,
    pub(super) params: Value,
}

impl Draft {
    pub(super) fn read(input: &mut Input<'_>) -> Self {
        let (id, method) = (id(input.below(6)), input.pick(&METHODS));
        let flags = input.byte();
        let mut params = json!({
            "name": input.pick(&TOOLS),
            "uri": input.pick(&["file:///a.txt", "file:///b.txt", "file:///c.txt", "file:///d.txt", "file:///gone"]),
            "level": "debug",
            "ref": { "type": "ref/prompt", "name": "greet" },
            "argument": { "name": "a", "value": "o" },
            "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["file:///a.txt"] },
            "arguments": { "message": "m" },
        });
        if flags & 1 == 1 {
            params["_meta"]["progressToken"] = if flags & 2 == 2 { json!("token") } else { json!(flags) };
        }
        let revision = (flags & 4 == 4).then_some(Revision::LATEST);
        if let Some(revision) = revision {
            params["_meta"][keys::PROTOCOL_VERSION] = json!(revision.as_str());
            params["_meta"][keys::CLIENT_CAPABILITIES] = capabilities(flags >> 3);
            params["_meta"][keys::LOG_LEVEL] = json!("info");
        }
        if flags & 128 == 128 {
            // A member that is something else than it should be.
            let member =
                input.pick(&["name", "uri", "arguments", "notifications", "_meta", "level", "cursor"]);
            params[member] = input.pick(&["null", "7", "[]", "{}", "\"\""]).parse().unwrap_or_default();
        }
        Self { id, method: method.to_owned(), revision, params }
    }

    /// The message, with a state and the responses to its input requests if it is repeated.
    pub(super) fn message(&self, repeated: Option<(Value, Value)>) -> Value {
        let mut params = self.params.clone();
        if let Some((state, responses)) = repeated {
            params["requestState"] = state;
            params["inputResponses"] = responses;
        }
        json!({ "jsonrpc": "2.0", "id": self.id, "method": self.method, "params": params })
    }
}

/// Numbers and texts, of which some look alike.
pub(super) fn id(number: usize) -> Value {
    if number < 3 { json!(number) } else { json!((number - 3).to_string()) }
}

/// An `initialize` in any revision, or in none.
pub(super) fn initialize(input: &mut Input<'_>) -> (Value, String) {
    let versions = Revision::ALL.map(Revision::as_str);
    let version = versions.get(input.below(versions.len() + 1)).copied().unwrap_or("1999-01-01");
    let params = initialize_params("c", version, capabilities(input.byte()));
    let message = json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params });
    (message, "initialize".to_owned())
}

/// A cancellation.
pub(super) fn cancelled(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "r" } })
}

/// A response to a request of the server, or to none.
pub(super) fn answer(input: &mut Input<'_>, request: Option<&Value>) -> Value {
    let id = request.map_or_else(|| json!(input.byte()), |request| request["id"].clone());
    let result = match input.below(9) {
        5 | 6 => json!({ "task": task(input) }),
        7 | 8 => task(input),
        0 => json!({ "roots": [{ "uri": "file:///r" }] }),
        1 => json!({ "action": "accept", "content": { "name": "n" } }),
        2 => json!({ "role": "assistant", "content": { "type": "text", "text": "t" }, "model": "m" }),
        3 => json!({}),
        _ => {
            return json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -1, "message": "no" } });
        }
    };
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// What becomes of a task of the client.
pub(super) fn task(input: &mut Input<'_>) -> Value {
    let status =
        input.pick(&["working", "working", "input_required", "completed", "failed", "cancelled", "other"]);
    let interval = input.pick(&["null", "-1", "0", "1", "5000", "1e300", "\"\""]);
    let mut task = json!({
        "taskId": input.pick(&["t1", "t2", "t3", ""]), "status": status, "createdAt": "c", "lastUpdatedAt": "u",
        "ttl": 1000, "pollInterval": interval.parse::<Value>().unwrap_or_default()
    });
    if input.below(8) == 0 {
        task[input.pick(&["taskId", "status", "ttl"])] = json!([]);
    }
    task
}

fn capabilities(flags: u8) -> Value {
    let mut capabilities = json!({});
    for (bit, name, value) in [
        (1, "roots", json!({ "listChanged": true })),
        (2, "sampling", json!({})),
        (4, "elicitation", json!({ "form": {}, "url": {} })),
        (
            8,
            "tasks",
            json!({
                "cancel": {}, "requests": { "sampling": { "createMessage": {} }, "elicitation": { "create": {} } }
            }),
        ),
    ] {
        if flags & bit == bit {
            capabilities[name] = value;
        }
    }
    capabilities
}
