//! The server of a recording: what it answers to which request, and what it says of those that are not in the recording.

use refmcp_audit::replay::{Mock, MockOutput, MockSession};

use super::{json, recorded};

fn session(lines: &[&str]) -> MockSession {
    Mock::new(&recorded("stdio", lines)).session()
}

/// The texts that are sent for a message.
fn answers(session: &mut MockSession, text: &str) -> Vec<String> {
    let texts = session.receive(1, text).into_iter().filter_map(|output| match output {
        MockOutput::Message(message) => Some(message.text),
        MockOutput::Remark(_) => None,
    });
    texts.collect()
}

/// What is remarked on a message.
fn remark(session: &mut MockSession, text: &str) -> Option<String> {
    session.receive(1, text).into_iter().find_map(|output| match output {
        MockOutput::Remark(why) => Some(why),
        MockOutput::Message(_) => None,
    })
}

const CALLS: [&str; 6] = [
    r#"c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1},"_meta":{"progressToken":"t"}}}"#,
    r#"s {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#,
    r#"s { "jsonrpc":"2.0", "result":{"n":1.0}, "id":1}"#,
    r#"c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"a":2}}}"#,
    r#"s {"jsonrpc":"2.0","id":2,"result":{"n":2}}"#,
    r#"s {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
];

#[test]
fn a_request_is_matched_by_its_arguments_and_its_other_bytes_stay() {
    let mut session = session(&CALLS);
    let second =
        r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo","arguments":{"a":2}}}"#;
    let after = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let expected = [r#"{"jsonrpc":"2.0","id":"x","result":{"n":2}}"#, after];
    assert_eq!(answers(&mut session, second), expected);
    assert_eq!(answers(&mut session, second), expected, "the last one is there again");
    let first = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"arguments":{"a":1},"name":"echo","_meta":{"progressToken":7}}}"#;
    assert_eq!(
        answers(&mut session, first),
        [
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#,
            r#"{ "jsonrpc":"2.0", "result":{"n":1.0}, "id":9}"#,
        ]
    );
    let unwatched = first.replace(r#","_meta":{"progressToken":7}"#, "");
    assert_eq!(answers(&mut session, &unwatched), [r#"{ "jsonrpc":"2.0", "result":{"n":1.0}, "id":9}"#]);
}

#[test]
fn other_arguments_get_the_next_answer_to_the_same_tool_and_it_is_said() {
    let mut session = session(&CALLS);
    let call =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":3}}}"#;
    let why = remark(&mut session, call).unwrap();
    assert!(why.contains("line 2") && why.contains(r#""a":3"#), "{why}");
    assert_eq!(answers(&mut session, call)[0], r#"{"jsonrpc":"2.0","id":1,"result":{"n":2}}"#);
    let error = json(&answers(&mut session, call)[0]);
    assert_eq!(error["error"]["code"], -32603);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("no more of tools/call echo") && message.contains(r#"{"a":1}"#), "{message}");
}

#[test]
fn what_the_recording_does_not_have_is_an_error_that_names_it() {
    let mut session = session(&CALLS);
    for (text, code, what, has) in [
        (r#"{"id":1,"method":"prompts/list"}"#, -32601, "no request prompts/list", "tools/call"),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"x"}}"#,
            -32603,
            "no tools/call x",
            "tools/call echo",
        ),
    ] {
        let why = remark(&mut session, text).unwrap();
        let error = json(&answers(&mut session, text)[0]);
        assert_eq!(
            (&error["error"]["code"], &error["error"]["message"]),
            (&code.into(), &why.clone().into())
        );
        assert!(why.contains(what) && why.contains(has), "{why}");
    }
    assert_eq!(
        answers(&mut session, r#"{"id":1,"method":"ping"}"#),
        [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]
    );
    assert!(answers(&mut session, r#"{"method":"notifications/unknown"}"#).is_empty());
    for text in ["", "no json", "[]", "[1]", r#"{"id":1,"result":{}}"#] {
        assert!(session.receive(1, text).is_empty(), "{text}");
    }
}

#[test]
fn what_followed_a_request_of_the_server_waits_for_the_response() {
    let mut session = session(&[
        r#"c {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
        r#"s {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#,
        r#"c {"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"s {"jsonrpc":"2.0","id":"r","method":"roots/list"}"#,
        r#"c {"jsonrpc":"2.0","id":"r","result":{"roots":[]}}"#,
        r#"s {"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
    ]);
    assert_eq!(answers(&mut session, r#"{"id":5,"method":"initialize","params":{"a":1}}"#).len(), 1);
    let asked = answers(&mut session, r#"{"method":"notifications/initialized"}"#);
    assert_eq!(asked, [r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#]);
    assert_eq!(answers(&mut session, r#"{"id":1,"result":{"roots":[]}}"#).len(), 1);
}

#[test]
fn a_subscription_gets_what_later_requests_bring_about() {
    let mut session = session(&[
        r#"c {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}"#,
        r#"s {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
        r#"c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"touch"}}"#,
        r#"s {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
        r#"s {"jsonrpc":"2.0","id":2,"result":{}}"#,
    ]);
    let listened = session.receive(10, r#"{"id":"l","method":"subscriptions/listen","params":{}}"#);
    let [MockOutput::Message(acknowledged)] = &listened[..] else { panic!("{listened:?}") };
    assert!(acknowledged.call == Some(10) && acknowledged.text.contains(r#"subscriptionId":"l""#));
    let touched = session.receive(11, r#"{"id":"t","method":"tools/call","params":{"name":"touch"}}"#);
    let [MockOutput::Message(updated), MockOutput::Message(result)] = &touched[..] else {
        panic!("{touched:?}")
    };
    assert!(updated.call == Some(10) && updated.text.contains(r#"subscriptionId":"l""#), "{updated:?}");
    assert!(result.call == Some(11) && result.is_response);
    // Without a reader there is no one to tell.
    session.left(10);
    assert_eq!(session.receive(12, r#"{"id":"t","method":"tools/call","params":{"name":"touch"}}"#).len(), 1);
}

#[test]
fn revisions_of_one_recording_are_told_apart() {
    let call = |version: &str| {
        format!(
            r#"{{"id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}"}}}}}}"#
        )
    };
    let lines = [
        format!("c {}", call("2026-07-28")),
        r#"s {"id":1,"result":{"newest":true}}"#.to_owned(),
        r#"c {"id":2,"method":"tools/list"}"#.to_owned(),
        r#"s {"id":2,"result":{"newest":false}}"#.to_owned(),
    ];
    let mut session = session(&lines.each_ref().map(String::as_str));
    assert!(answers(&mut session, &call("2026-07-28"))[0].contains("true"));
    assert!(answers(&mut session, &call("2026-07-28"))[0].contains("true"), "not the other one");
}

#[test]
fn a_client_that_leaves_something_out_goes_on_behind_it() {
    let list = r#"c {"id":1,"method":"tools/list"}"#;
    let mut session = session(&[
        list,
        r#"s {"id":1,"result":{"at":"first"}}"#,
        r#"c {"id":2,"method":"tools/call","params":{"name":"add"}}"#,
        r#"s {"id":2,"result":{}}"#,
        list,
        r#"s {"id":1,"result":{"at":"last"}}"#,
    ]);
    let asked = list.strip_prefix("c ").unwrap();
    assert_eq!(answers(&mut session, r#"{"id":2,"method":"tools/call","params":{"name":"add"}}"#).len(), 1);
    assert!(answers(&mut session, asked)[0].contains("last"));
    assert!(answers(&mut session, asked)[0].contains("first"), "it is left");
}
