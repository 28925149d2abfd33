//! The client of a recording: what it sends when, and what it sends in place of values that a server made up.

use refmcp_audit::recording::{Direction, Event, EventKind};
use refmcp_audit::replay::{
    ClientReplay, Comparison, RecordedConversation, ReplayAction, ReplayState, ReplayTransport, conversations,
};

use super::{event, one, opened, passed, recorded};

/// A replay over a pipe.
fn over_a_pipe(recorded: &RecordedConversation) -> ClientReplay<'_> {
    ClientReplay::new(recorded, ReplayTransport::Pipe, "stdio")
}

/// What is sent next.
fn sent(replay: &mut ClientReplay<'_>) -> String {
    assert_eq!(replay.state(), ReplayState::Ready);
    match replay.take() {
        Some(ReplayAction::Send { text, .. }) => {
            replay.observe(&event(&format!("c {text}"), None)).unwrap();
            text
        }
        other => panic!("{other:?}"),
    }
}

fn waits(replay: &ClientReplay<'_>) -> bool {
    replay.state() == ReplayState::Waits { is_needed: true }
}

#[test]
fn what_was_sent_after_an_answer_waits_for_it_and_other_requests_do_not() {
    let one_by_one = recorded(
        "stdio",
        &[
            r#"c {"id":1,"method":"a"}"#,
            r#"c {"id":2,"method":"b"}"#,
            r#"s {"id":2,"result":{}}"#,
            r#"s {"id":1,"result":{}}"#,
            r#"c { "id" : 3, "method" : "c" }"#,
            r#"s {"id":3,"result":{}}"#,
        ],
    );
    let mut replay = over_a_pipe(one(&one_by_one));
    assert_eq!(sent(&mut replay), r#"{"id":1,"method":"a"}"#);
    assert_eq!(sent(&mut replay), r#"{"id":2,"method":"b"}"#);
    assert!(waits(&replay));
    replay.observe(&event(r#"s {"id":1,"result":{}}"#, None)).unwrap();
    assert!(waits(&replay));
    replay.observe(&event(r#"s {"id":2,"result":{}}"#, None)).unwrap();
    assert_eq!(sent(&mut replay), r#"{ "id" : 3, "method" : "c" }"#, "its bytes are those of the recording");
    assert!(waits(&replay));
    replay.give_up();
    assert_eq!(replay.state(), ReplayState::Done);
    let comparison = Comparison::between(&one_by_one, &[replay.finish()], &[]);
    assert_eq!(comparison.differences.len(), 1, "{comparison:?}");
    assert_eq!((comparison.same, comparison.differences[0].request.as_deref()), (2, Some("c")));
}

#[test]
fn values_that_the_server_made_up_are_replaced() {
    let recorded = recorded(
        "stdio",
        &[
            r#"c {"id":1,"method":"tools/list"}"#,
            r#"s {"id":1,"result":{"tools":[],"nextCursor":"x1","other":"same"}}"#,
            r#"c {"id":2,"method":"tools/list","params":{"cursor":"x1","_meta":{"progressToken":2}}}"#,
            r#"s {"id":90,"method":"sampling/createMessage","params":{"_meta":{"progressToken":5}}}"#,
            r#"c {"method":"notifications/progress","params":{"progressToken":5,"progress":1}}"#,
            r#"c {"id":90,"result":{"text":"same"}}"#,
            r#"s {"id":2,"result":{"requestState":"r1","id":"550e8400-e29b-41d4-a716-446655440000"}}"#,
            r#"c {"id":3,"method":"b","params":{"requestState":"r1","of":"550e8400-e29b-41d4-a716-446655440000"}}"#,
        ],
    );
    let mut replay = over_a_pipe(one(&recorded));
    sent(&mut replay);
    replay
        .observe(&event(r#"s {"id":1,"result":{"tools":[],"nextCursor":"y1","other":"new"}}"#, None))
        .unwrap();
    let list = sent(&mut replay);
    assert_eq!(
        list,
        r#"{"id":2,"method":"tools/list","params":{"cursor":"y1","_meta":{"progressToken":2}}}"#
    );
    let ask = r#"s {"id":"s1","method":"sampling/createMessage","params":{"_meta":{"progressToken":"p"}}}"#;
    replay.observe(&event(ask, None)).unwrap();
    let progress = sent(&mut replay);
    assert_eq!(
        progress,
        r#"{"method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#
    );
    assert_eq!(sent(&mut replay), r#"{"id":"s1","result":{"text":"same"}}"#);
    let result = r#"s {"id":2,"result":{"requestState":"\"r2","id":"00000000-e29b-41d4-a716-446655440000"}}"#;
    replay.observe(&event(result, None)).unwrap();
    assert_eq!(
        sent(&mut replay),
        r#"{"id":3,"method":"b","params":{"requestState":"\"r2","of":"00000000-e29b-41d4-a716-446655440000"}}"#
    );
    assert_eq!(replay.state(), ReplayState::Done);
    assert!(
        Comparison::between(
            &recorded,
            &[replay.finish()],
            &["/result/other".to_owned(), "/result/id".to_owned(), "/params/of".to_owned()]
        )
        .is_same()
    );
}

#[test]
fn a_request_that_the_recorded_server_did_not_make_is_answered_and_an_answer_to_none_is_not_sent() {
    let recorded = recorded(
        "stdio",
        &[
            r#"c {"id":1,"method":"a"}"#,
            r#"s {"id":7,"method":"roots/list"}"#,
            r#"c {"id":7,"result":{"roots":[]}}"#,
            r#"s {"id":1,"result":{}}"#,
        ],
    );
    let mut replay = over_a_pipe(one(&recorded));
    sent(&mut replay);
    replay.observe(&event(r#"s {"id":"p","method":"ping"}"#, None)).unwrap();
    replay.observe(&event(r#"s {"id":"q","method":"elicitation/create"}"#, None)).unwrap();
    assert_eq!(sent(&mut replay), r#"{"id":"p","jsonrpc":"2.0","result":{}}"#);
    assert!(sent(&mut replay).contains("-32601"));
    assert!(waits(&replay));
    replay.give_up();
    assert_eq!(replay.take(), None, "nothing was asked");
    replay.observe(&event(r#"s {"id":1,"result":{}}"#, None)).unwrap();
    assert_eq!(replay.state(), ReplayState::Done);
}

#[test]
fn notifications_are_waited_for_briefly() {
    let recorded = recorded(
        "stdio",
        &[r#"c {"id":1,"method":"a"}"#, r#"s {"method":"notifications/message"}"#, r#"c {"method":"b"}"#],
    );
    let mut replay = over_a_pipe(one(&recorded));
    sent(&mut replay);
    assert_eq!(replay.state(), ReplayState::Waits { is_needed: false });
    replay.observe(&event(r#"s {"method":"notifications/message"}"#, None)).unwrap();
    assert_eq!(sent(&mut replay), r#"{"method":"b"}"#);
}

/// The head of a request or a response.
fn head(stream: u64, status: Option<u16>, fields: &[(&str, &str)]) -> Event {
    let headers = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let kind = match status {
        Some(status) => EventKind::Response { direction: Direction::Received, status, headers },
        None => {
            let (method, target) = ("POST".to_owned(), "/mcp".to_owned());
            EventKind::Request { direction: Direction::Sent, method, target, headers }
        }
    };
    Event { at: 1, connection: 1, revision: None, stream: Some(stream), kind }
}

#[test]
fn headers_over_http_have_the_session_and_the_revision_of_this_run() {
    let initialize = r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
    let text = [
        opened("http"),
        head(1, None, &[("accept", "a"), ("host", "h"), ("x-key", "***")]).to_line(),
        passed(&format!("c {initialize}"), Some(1)),
        head(1, Some(200), &[("mcp-session-id", "***")]).to_line(),
        passed(r#"s {"id":1,"result":{"protocolVersion":"2025-06-18"}}"#, Some(1)),
        head(2, None, &[("mcp-session-id", "***"), ("mcp-protocol-version", "2025-06-18")]).to_line(),
        passed(r#"c {"method":"notifications/initialized"}"#, Some(2)),
        head(2, Some(202), &[]).to_line(),
    ];
    let recorded = conversations(text.concat().as_bytes()).unwrap();
    let mut replay = ClientReplay::new(one(&recorded), ReplayTransport::Http, "http");
    let Some(ReplayAction::Send { stream, text, headers: Some(headers) }) = replay.take() else { panic!() };
    assert_eq!((&*text, headers), (initialize, vec![("accept".to_owned(), "a".to_owned())]));
    replay.observe(&event(&format!("c {text}"), Some(stream))).unwrap();
    assert!(waits(&replay));
    replay.observe(&head(stream, Some(200), &[("mcp-session-id", "s1")])).unwrap();
    replay.observe(&event(r#"s {"id":1,"result":{"protocolVersion":"2025-03-26"}}"#, Some(stream))).unwrap();
    let Some(ReplayAction::Send { headers: Some(headers), .. }) = replay.take() else { panic!() };
    let expected = [("mcp-session-id", "s1"), ("mcp-protocol-version", "2025-03-26")];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!((replay.session(), replay.version()), (Some("s1"), Some("2025-03-26")));
}

#[test]
fn a_response_that_ended_without_the_answer_is_not_waited_for() {
    let text = [
        opened("http"),
        head(1, None, &[]).to_line(),
        passed(r#"c {"id":1,"method":"a"}"#, Some(1)),
        head(1, Some(200), &[]).to_line(),
        passed(r#"s {"id":1,"result":{}}"#, Some(1)),
    ];
    let recorded = conversations(text.concat().as_bytes()).unwrap();
    let mut replay = ClientReplay::new(one(&recorded), ReplayTransport::Http, "http");
    let Some(ReplayAction::Send { stream, .. }) = replay.take() else { panic!() };
    assert!(waits(&replay));
    let kind = EventKind::Failed { why: "no route to host".to_owned() };
    replay.observe(&Event { at: 1, connection: 1, revision: None, stream: Some(stream), kind }).unwrap();
    assert_eq!(replay.state(), ReplayState::Done);
}

#[test]
fn streams_of_processes_that_recorded_into_one_file_are_told_apart() {
    let of_process = |method: &str| {
        [
            opened("http"),
            head(1, None, &[]).to_line(),
            passed(&format!(r#"c {{"id":1,"method":"{method}"}}"#), Some(1)),
            head(1, Some(200), &[]).to_line(),
            passed(r#"s {"id":1,"result":{}}"#, Some(1)),
        ]
        .concat()
    };
    let recorded = conversations((of_process("a") + &of_process("b")).as_bytes()).unwrap();
    let mut replay = ClientReplay::new(one(&recorded), ReplayTransport::Http, "http");
    let Some(ReplayAction::Send { stream: first, .. }) = replay.take() else { panic!() };
    replay.observe(&head(first, Some(200), &[])).unwrap();
    replay.observe(&event(r#"s {"id":1,"result":{}}"#, Some(first))).unwrap();
    let Some(ReplayAction::Send { stream: second, .. }) = replay.take() else { panic!() };
    assert_ne!(first, second);
    // The end of the first response says nothing of the second.
    let kind = EventKind::Ended { direction: Direction::Received };
    replay.observe(&Event { at: 1, connection: 1, revision: None, stream: Some(first), kind }).unwrap();
    assert!(waits(&replay));
}

#[test]
fn a_cancellation_comes_as_late_as_in_the_recording() {
    let text = [
        opened("stdio"),
        passed(r#"c {"id":1,"method":"a"}"#, None),
        passed(r#"c {"method":"notifications/cancelled","params":{"requestId":1}}"#, None)
            .replace("\"at\":1,", "\"at\":301,"),
        passed(r#"c {"id":2,"method":"b"}"#, None).replace("\"at\":1,", "\"at\":9000,"),
    ];
    let recorded = conversations(text.concat().as_bytes()).unwrap();
    let mut replay = over_a_pipe(one(&recorded));
    for (millis, method) in [(0, "\"a\""), (300, "cancelled"), (0, "\"b\"")] {
        assert_eq!(replay.pause().as_millis(), millis);
        assert!(sent(&mut replay).contains(method));
    }
}
