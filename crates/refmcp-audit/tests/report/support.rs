//! Recordings, as a server writes them.

use refmcp_audit::report::{Excerpt, Report, Reporter};

/// A session in which all is well.
pub(crate) const GOOD: &str = concat!(
    r#"{"at":1000,"event":"opened","connection":1,"side":"server","transport":"stdio","peer":""}"#,
    "\n",
    r#"{"at":1001,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"tests","version":"1"}}}}"#,
    "\n",
    r#"{"at":1002,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"2"}}}}"#,
    "\n",
    r#"{"at":1003,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","method":"notifications/initialized"}}"#,
    "\n",
    r#"{"at":1004,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}"#,
    "\n",
    r#"{"at":1005,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":"b"}}}"#,
    "\n",
    r#"{"at":1006,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"b"}}}"#,
    "\n",
    r#"{"at":1007,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}}"#,
    "\n",
    r#"{"at":1008,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":"p","method":"ping"}}"#,
    "\n",
    r#"{"at":1009,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":"p","result":{}}}"#,
    "\n",
    r#"{"at":1010,"event":"closed","connection":1,"why":"the peer closed it"}"#,
    "\n",
);

/// A session in which both parties use what they have, and refuse some of it.
pub(crate) const FEATURES: &str = concat!(
    r#"{"at":1000,"event":"opened","connection":1,"side":"server","transport":"stdio","peer":""}"#,
    "\n",
    r#"{"at":1001,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{},"sampling":{},"elicitation":{}},"clientInfo":{"name":"tests","version":"1"}}}}"#,
    "\n",
    r#"{"at":1002,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{},"completions":{}},"serverInfo":{"name":"scripted","version":"2"}}}}"#,
    "\n",
    r#"{"at":1003,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","method":"notifications/initialized"}}"#,
    "\n",
    r#"{"at":1004,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":5}}}}"#,
    "\n",
    r#"{"at":1005,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":1}}}"#,
    "\n",
    r#"{"at":1006,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}}"#,
    "\n",
    r#"{"at":1007,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":"r","method":"roots/list"}}"#,
    "\n",
    r#"{"at":1008,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":"r","result":{"roots":[]}}}"#,
    "\n",
    r#"{"at":1009,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}"#,
    "\n",
    r#"{"at":1010,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":"s","error":{"code":-1,"message":"User rejected sampling request"}}}"#,
    "\n",
    r#"{"at":1011,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":2,"method":"completion/complete","params":{}}}"#,
    "\n",
    r#"{"at":1012,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}}}"#,
    "\n",
    r#"{"at":1013,"event":"closed","connection":1,"why":"the peer closed it"}"#,
    "\n",
);

/// A session in which the client answers what was not asked, twice.
pub(crate) const BROKEN: &str = concat!(
    r#"{"at":1000,"event":"opened","connection":1,"side":"server","transport":"stdio","peer":""}"#,
    "\n",
    r#"{"at":1001,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"tests","version":"1"}}}}"#,
    "\n",
    r#"{"at":1002,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"scripted","version":"2"}}}}"#,
    "\n",
    r#"{"at":1003,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","method":"notifications/initialized"}}"#,
    "\n\n",
    r#"{"at":1004,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":1,"method":"ping"}}"#,
    "\n",
    r#"{"at":1005,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":1,"result":{}}}"#,
    "\n",
    r#"{"at":1006,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":7,"result":{"text":"</pre><script>alert(1)</script> onclick=\"x\" "#,
    "\u{202e}",
    r#"txt ```"}}}"#,
    "\n",
    r#"{"at":1007,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":8,"result":{}}}"#,
    "\n",
    r#"{"at":1008,"event":"closed","connection":1,"why":"the peer closed it"}"#,
    "\n",
);

/// The report on one recording, with its events.
pub(crate) fn report_and_excerpt(recording: &str) -> (Report, Excerpt) {
    let mut reporter = Reporter::default();
    reporter.read("session.jsonl", recording.as_bytes()).unwrap();
    reporter.finish(None)
}

/// The report on one recording.
pub(crate) fn report(recording: &str) -> Report {
    report_and_excerpt(recording).0
}

/// The line of a connection that is opened.
pub(crate) fn opened(transport: &str) -> String {
    format!(
        "{{\"at\":1,\"event\":\"opened\",\"connection\":1,\"side\":\"server\",\"transport\":\"{transport}\",\"peer\":\"\"}}\n"
    )
}

/// The line of a message of the client.
pub(crate) fn client(message: &str) -> String {
    line("received", message)
}

/// The line of a message of the server.
pub(crate) fn server(message: &str) -> String {
    line("sent", message)
}

fn line(direction: &str, message: &str) -> String {
    format!(
        "{{\"at\":2,\"event\":\"message\",\"connection\":1,\"direction\":\"{direction}\",\"message\":{message}}}\n"
    )
}

/// Asserts that every element that is opened is closed, in its order, but for those that HTML leaves open.
pub(crate) fn assert_balanced(markup: &str) {
    let void = ["meta", "input", "!doctype", "?xml"];
    let mut open: Vec<&str> = Vec::new();
    let style_end = markup.find("</style>").map_or(0, |at| at);
    let (head, body) = markup.split_at(style_end);
    let head = head.split("<style>").next().unwrap();
    let rest = body.strip_prefix("</style>").unwrap_or(body);
    for part in [head, rest].into_iter().flat_map(|text| text.split('<').skip(1)) {
        let tag = part.split('>').next().unwrap();
        let name = tag.trim_end_matches('/').split([' ', '\n']).next().unwrap();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{part}");
        } else if !void.contains(&name) && !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
}
