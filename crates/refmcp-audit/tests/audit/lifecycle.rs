//! Rules about the lifecycle: handshakes, capabilities, requests without sessions, finding the common revision.

use refmcp_audit::recording::Side;
use refmcp_audit::verdict::Role;
use refmcp_proto::rule::{self, Rule};
use serde_json::{Value, json};

use crate::script::{
    Example, SESSIONS, Script, client, error, initialize, initialized, notification, request, result, server,
    stateless_request, stateless_result,
};

pub(crate) fn examples() -> Vec<Example> {
    let mut examples = Vec::new();
    for revision in SESSIONS {
        examples.extend(handshake(revision));
        examples.extend(capabilities(revision));
    }
    examples.extend(descriptions());
    examples.extend(discovery());
    examples.extend(stateless_methods());
    examples
}

fn opening(revision: &str) -> Value {
    request(0, "initialize", initialize(revision, json!({})))
}

fn opened(revision: &str) -> Value {
    result(0, initialized(revision, json!({"tools": {"listChanged": true}})))
}

fn confirmed() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

fn listed(id: impl Into<Value> + Copy, script: Script) -> Script {
    script.client(request(id, "tools/list", json!({}))).server(result(id, json!({"tools": []})))
}

fn handshake(revision: &str) -> Vec<Example> {
    let whole =
        || Script::new("stdio").client(opening(revision)).server(opened(revision)).client(confirmed());
    let open = || Script::new("stdio").client(opening(revision)).server(opened(revision));
    let opens = |params: Value| Script::new("stdio").client(request(0, "initialize", params));
    let without = |member: &str| {
        let mut params = initialize(revision, json!({}));
        params.as_object_mut().unwrap().remove(member);
        opens(params)
    };
    let answers = |member: &str| {
        let mut answer = opened(revision);
        answer["result"].as_object_mut().unwrap().remove(member);
        Script::new("stdio").client(opening(revision)).server(answer).client(confirmed())
    };
    let changed = || notification("notifications/tools/list_changed", json!({}));
    let cancel = |id: i64| notification("notifications/cancelled", json!({"requestId": id}));
    let overtaken = |script: Script| {
        script.on_stream(2).client(request(1, "ping", json!({}))).server(result(1, json!({})))
    };
    vec![
        client(
            &rule::LIFE_01,
            listed(1, whole()),
            vec![
                Script::new("stdio").client(request(1, "tools/list", json!({}))).server(error(
                    1,
                    -32600,
                    json!(null),
                )),
                without("protocolVersion"),
                without("capabilities"),
                without("clientInfo"),
                whole().client(request(2, "initialize", initialize(revision, json!({})))).server(error(
                    2,
                    -32600,
                    json!(null),
                )),
            ],
        ),
        // A session may be opened again after an error, and a ping comes before all else.
        client(
            &rule::LIFE_01,
            Script::new("stdio")
                .client(request(7, "ping", json!({})))
                .server(result(7, json!({})))
                .client(request(8, "initialize", initialize(revision, json!({}))))
                .server(error(8, -32602, json!(null)))
                .opens(revision, json!({}), json!({})),
            vec![],
        ),
        client(
            &rule::LIFE_02,
            listed(1, whole()),
            vec![
                listed(1, open()),
                whole().client(confirmed()),
                Script::new("stdio").client(confirmed()),
                open().client(json!({"jsonrpc": "2.0", "method": "initialized"})),
                open().client(json!({"jsonrpc": "2.0", "method": "notification/initialized"})),
            ],
        ),
        client(&rule::LIFE_02, overtaken(whole()), vec![]),
        client(
            &rule::LIFE_03,
            whole(),
            vec![
                Script::new("stdio")
                    .client(opening(revision))
                    .client(request(1, "tools/list", json!({})))
                    .server(opened(revision))
                    .client(confirmed())
                    .server(result(1, json!({"tools": []}))),
            ],
        ),
        server(
            &rule::LIFE_04,
            whole().server(changed()),
            vec![
                open().server(changed()).client(confirmed()),
                Script::new("stdio")
                    .client(opening(revision))
                    .server(changed())
                    .server(opened(revision))
                    .client(confirmed()),
                Script::new("stdio")
                    .client(request(0, "initialize", initialize(revision, json!({"roots": {}}))))
                    .server(opened(revision))
                    .server(request(1, "roots/list", json!({})))
                    .client(confirmed())
                    .client(result(1, json!({"roots": []}))),
            ],
        ),
        client(&rule::LIFE_05, whole(), vec![]),
        client(
            &rule::LIFE_05,
            whole(),
            vec![
                Script::new("stdio")
                    .client(opening("2026-07-28"))
                    .server(opened(revision))
                    .client(confirmed()),
                Script::new("stdio")
                    .client(opening("2025-04-01"))
                    .server(opened(revision))
                    .client(confirmed()),
            ],
        ),
        server(
            &rule::LIFE_06,
            whole(),
            vec![
                Script::new("stdio").client(opening(revision)).server(opened("2026-07-28")),
                Script::new("stdio").client(opening(revision)).server(opened("2025-04-01")),
            ],
        ),
        server(
            &rule::LIFE_13,
            whole(),
            vec![answers("protocolVersion"), answers("capabilities"), answers("serverInfo")],
        ),
        client(
            &rule::LIFE_11,
            whole().client(request(1, "tools/call", json!({"name": "t"}))).client(cancel(1)),
            vec![
                Script::new("stdio")
                    .client(opening(revision))
                    .client(cancel(0))
                    .server(opened(revision))
                    .client(confirmed()),
            ],
        ),
    ]
}

/// Parameters that a method has.
fn params_of(method: &str) -> Value {
    match method {
        "resources/subscribe" | "resources/unsubscribe" => json!({"uri": "a:b"}),
        "logging/setLevel" => json!({"level": "info"}),
        "subscriptions/listen" => json!({"notifications": {}}),
        "completion/complete" => {
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}})
        }
        "sampling/createMessage" => {
            let content = json!({"type": "text", "text": "?"});
            json!({"messages": [{"role": "user", "content": content}], "maxTokens": 9})
        }
        "elicitation/create" => {
            let fields = json!({"name": {"type": "string"}});
            json!({"message": "?", "requestedSchema": {"type": "object", "properties": fields}})
        }
        "initialize" => initialize("2025-11-25", json!({})),
        _ => json!({}),
    }
}

fn capabilities(revision: &str) -> Vec<Example> {
    let rule: &'static Rule = if revision < "2025-06-18" { &rule::LIFE_14 } else { &rule::LIFE_08 };
    let session = |client: Value, server: Value| Script::session("stdio", revision, client, server);
    let bare = || session(json!({}), json!({}));
    let asks = |method: &str| {
        bare().client(request(1, method, params_of(method))).server(error(1, -32601, json!(null)))
    };
    let server_asks = |method: &str| {
        bare().server(request(1, method, params_of(method))).client(error(1, -32601, json!(null)))
    };
    let mut client_breaks: Vec<Script> = [
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/subscribe",
        "prompts/list",
        "logging/setLevel",
        // What the revision does not have, or only the other side sends.
        "server/discover",
        "subscriptions/listen",
        "roots/list",
        "sampling/createMessage",
    ]
    .map(asks)
    .into();
    client_breaks.push(bare().client(notification("notifications/tools/list_changed", json!({}))));
    client_breaks.push(bare().client(notification("notifications/subscriptions/acknowledged", json!({}))));
    client_breaks.push(bare().client(notification("roots/list_changed", json!({}))));
    let mut server_breaks: Vec<Script> =
        ["roots/list", "sampling/createMessage", "elicitation/create"].map(server_asks).into();
    server_breaks.push(server_asks("tools/list"));
    for changed in
        ["tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"]
    {
        server_breaks.push(bare().server(notification(changed, json!({"uri": "a:b"}))));
    }
    server_breaks.push(bare().server(notification("notifications/roots/list_changed", json!({}))));
    let mut examples = vec![
        client(rule, listed(1, session(json!({}), json!({"tools": {}}))), client_breaks),
        server(
            rule,
            session(json!({"roots": {}}), json!({}))
                .server(request(1, "roots/list", json!({})))
                .client(result(1, json!({"roots": []}))),
            server_breaks,
        ),
        // Methods beyond the protocol are between the parties.
        client(
            rule,
            listed(1, session(json!({}), json!({"tools": {}})))
                .client(request("x", "example/method", json!({})))
                .server(error("x", -32601, json!(null))),
            vec![],
        ),
    ];
    if revision != "2024-11-05" {
        examples.push(client(
            rule,
            listed(1, session(json!({}), json!({"tools": {}}))),
            vec![asks("completion/complete")],
        ));
    }
    examples
}

/// What a request without a session says of its client.
fn descriptions() -> Vec<Example> {
    let discovered = || Script::without_session("stdio", json!({"tools": {}}));
    let called = || stateless_result(1, json!({"content": []}));
    let call = |meta: Value| request(1, "tools/call", json!({"name": "t", "arguments": {}, "_meta": meta}));
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let refused = |meta: Value| discovered().client(call(meta)).server(error(1, -32602, json!(null)));
    let right = || json!({version: "2026-07-28", capabilities: {}});
    let with = |key: &str, value: Value| {
        let mut meta = right();
        meta[key] = value;
        meta
    };
    let provoked = |answer: Value| {
        let partial = call(json!({version: "2026-07-28"}));
        discovered().client(partial).server(answer).provoked_by(&rule::STATE_04, Role::Client)
    };
    vec![
        client(
            &rule::STATE_04,
            discovered().client(call(right())).server(called()),
            vec![
                refused(json!({})),
                refused(json!({version: "2026-07-28"})),
                refused(json!({capabilities: {}})),
                refused(json!({version: "2026-07-28", capabilities: true})),
                refused(json!({version: 1, capabilities: {}})),
                refused(with("io.modelcontextprotocol/clientInfo", json!("c"))),
                discovered()
                    .client(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
                    .server(error(1, -32602, json!(null))),
                Script::new("stdio")
                    .client(json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}))
                    .server(error(1, -32602, json!(null))),
            ],
        ),
        client(
            &rule::T_11,
            discovered().client(call(right())).server(called()),
            vec![refused(json!({version: "2025-06-18", capabilities: {}}))],
        ),
        server(
            &rule::STATE_06,
            discovered().client(call(right())).server(called()),
            vec![
                discovered()
                    .client(call(right()))
                    .server(result(1, json!({"resultType": "complete", "content": []}))),
            ],
        ),
        server(
            &rule::STATE_05,
            provoked(error(1, -32602, json!(null))),
            vec![provoked(called()), provoked(error(1, -32603, json!(null)))],
        ),
    ]
}

fn discovery() -> Vec<Example> {
    let discovered = || Script::without_session("stdio", json!({"tools": {}}));
    let discover = || Script::new("stdio").client(stateless_request(1, "server/discover", json!({})));
    let found = |members: Value| {
        let mut whole = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"});
        whole.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        whole.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        stateless_result(1, whole)
    };
    let named = |id: i64, version: &str| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": version});
        stateless_request(id, "tools/call", json!({"name": "t", "arguments": {}, "_meta": meta}))
    };
    let data = || json!({"supported": ["2026-07-28"], "requested": "2027-01-01"});
    let refused = |data: Value| discovered().client(named(1, "2027-01-01")).server(error(1, -32022, data));
    let by_client = || Script::recorded_by(Side::Client, "stdio").discovers(json!({"tools": {}}));
    let refused_client = || by_client().client(named(1, "2027-01-01")).server(error(1, -32022, data()));
    let called = |id: i64| stateless_result(id, json!({"content": []}));
    let opens = |answer: Value| {
        discovered().client(request(1, "initialize", initialize("2025-11-25", json!({})))).server(answer)
    };
    let unsupported = |id: i64| error(id, -32022, data());
    vec![
        server(
            &rule::STATE_07,
            refused(data()),
            vec![
                refused(json!({"requested": "2027-01-01"})),
                refused(json!({"supported": ["2026-07-28"]})),
                refused(json!({"supported": ["2026-07-28"], "requested": "2026-07-28"})),
                discovered().client(named(1, "2026-07-28")).server(error(
                    1,
                    -32022,
                    json!({"supported": ["2027-01-01"], "requested": "2026-07-28"}),
                )),
                discovered().client(named(1, "2027-01-01")).server(called(1)),
            ],
        ),
        client(
            &rule::STATE_08,
            refused_client().client(named(2, "2026-07-28")).server(called(2)),
            vec![
                refused_client().client(named(2, "2027-01-01")).server(unsupported(2)),
                refused(data()).after(5_000).client(named(2, "2027-01-01")).server(unsupported(2)),
            ],
        ),
        // It may have been under way.
        server(
            &rule::STATE_07,
            refused(data()).client(named(2, "2027-01-01")).server(unsupported(2)),
            vec![],
        ),
        server(
            &rule::STATE_09,
            discovered(),
            vec![
                discover().server(found(json!({"supportedVersions": null}))),
                discover().server(found(json!({"supportedVersions": []}))),
                discover().server(found(json!({"capabilities": null}))),
                Script::new("stdio")
                    .client(named(1, "2026-07-28"))
                    .server(called(1))
                    .client(stateless_request(2, "server/discover", json!({})))
                    .server(error(2, -32601, json!(null))),
            ],
        ),
        // A server of sessions does not know the method.
        server(&rule::RPC_22, discover().server(error(1, -32601, json!(null))), vec![]),
        server(
            &rule::STATE_15,
            opens(error(1, -32601, json!({"supported": ["2026-07-28"]}))),
            vec![opens(error(1, -32601, json!(null)))],
        ),
    ]
}

fn stateless_methods() -> Vec<Example> {
    let discovered = || Script::without_session("stdio", json!({"tools": {}}));
    let asks = |method: &str| {
        discovered().client(stateless_request(1, method, params_of(method))).server(error(
            1,
            -32601,
            json!(null),
        ))
    };
    let pings = |answer: Value| {
        let asked = discovered().client(stateless_request(1, "ping", json!({})));
        asked.server(answer).provoked_by(&rule::STATE_17, Role::Client)
    };
    let requires = |data: Value| {
        discovered()
            .client(stateless_request(
                1,
                "tools/call",
                json!({"name": "t", "_meta": {"io.modelcontextprotocol/clientCapabilities": {"roots": {}}}}),
            ))
            .server(error(1, -32021, data))
    };
    vec![
        client(
            &rule::STATE_17,
            discovered(),
            vec![
                asks("logging/setLevel"),
                asks("ping"),
                asks("initialize"),
                asks("sampling/createMessage"),
                discovered().client(notification("notifications/initialized", json!({}))),
                discovered().client(notification(
                    "notifications/progress",
                    json!({"progressToken": 1, "progress": 1}),
                )),
                discovered().client(notification("notifications/message", json!({}))),
            ],
        ),
        server(
            &rule::STATE_17,
            discovered()
                .client(stateless_request(
                    1,
                    "tools/call",
                    json!({"name": "t", "_meta": {"progressToken": 1}}),
                ))
                .server(notification("notifications/progress", json!({"progressToken": 1, "progress": 1})))
                .server(stateless_result(1, json!({"content": []}))),
            vec![
                discovered().server(notification(
                    "notifications/elicitation/complete",
                    json!({"elicitationId": "1"}),
                )),
                discovered().server(notification("notifications/tasks/status", json!({}))),
            ],
        ),
        server(
            &rule::PING_02,
            pings(error(1, -32601, json!(null))),
            vec![pings(stateless_result(1, json!({})))],
        ),
        server(
            &rule::STATE_11,
            requires(json!({"requiredCapabilities": {"sampling": {}}})),
            vec![
                requires(json!(null)),
                requires(json!({"requiredCapabilities": ["sampling"]})),
                requires(json!({"requiredCapabilities": {}})),
                requires(json!({"requiredCapabilities": {"roots": {}}})),
            ],
        ),
    ]
}
