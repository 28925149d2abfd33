//! Recordings as conversations: what belongs together, and what cannot be used.

use std::fmt::Write as _;

use refmcp_audit::replay::{ConversationsError, conversations};

use super::{one, opened, passed, recorded};

#[test]
fn messages_belong_to_their_requests() {
    let conversations = recorded(
        "stdio",
        &[
            r#"c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t"}}}"#,
            r#"c {"jsonrpc":"2.0","id":"1","method":"ping"}"#,
            r#"s {"jsonrpc":"2.0","id":"1","result":{}}"#,
            r#"s {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#,
            r#"s {"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
            r#"c {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#,
            r#"s [{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}]"#,
            r#"c {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        ],
    );
    let owners: Vec<_> = one(&conversations).parts.iter().map(|part| part.owner).collect();
    assert_eq!(owners, [None, None, Some(1), Some(0), None, None, Some(0), None, Some(0)]);
    assert_eq!(one(&conversations).parts[5].answers, Some(4));
}

#[test]
fn requests_over_http_belong_together_until_another_session_opens() {
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut text = String::new();
    for (connection, message) in [(1, initialize), (2, ping), (3, initialize), (4, ping), (4, initialize)] {
        let opened = opened("http").replace("\"connection\":1", &format!("\"connection\":{connection}"));
        if connection != 4 || message == ping {
            text += &opened;
        }
        let line = passed(&format!("c {message}"), Some(connection));
        text += &line.replace("\"connection\":1", &format!("\"connection\":{connection}"));
    }
    let conversations = conversations(text.as_bytes()).unwrap();
    let counts: Vec<_> = conversations.iter().map(|it| it.parts.len()).collect();
    assert_eq!(counts, [2, 2, 1]);
}

#[test]
fn a_line_that_cannot_be_read_is_named_and_one_that_is_cut_off_is_left_out() {
    let text = opened("stdio") + "{\"at\":1,\"event\":\"sung\",\"connection\":1}\n";
    let error = conversations(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("`sung`"), "{error}");
    let text = opened("stdio") + &passed(r#"c {"id":1,"method":"ping"}"#, None) + "{\"at\":1,\"eve";
    assert_eq!(conversations(text.as_bytes()).unwrap()[0].parts.len(), 1);
}

#[test]
fn a_recording_with_too_many_events_is_refused_by_its_line() {
    let mut text = opened("stdio");
    for at in 0..200_001 {
        writeln!(text, "{{\"at\":{at},\"event\":\"closed\",\"connection\":1}}").unwrap();
    }
    let error = conversations(text.as_bytes()).unwrap_err();
    assert!(matches!(error, ConversationsError::TooLong { line: 200_001 }), "{error}");
}

#[test]
fn a_request_that_was_redirected_counts_once() {
    let head = |what: &str| {
        format!("{{\"at\":1,\"event\":\"head\",\"connection\":1,\"stream\":1,{what},\"headers\":{{}}}}\n")
    };
    let request = head(r#""direction":"sent","method":"POST","target":"/mcp""#);
    let message = passed(r#"c {"id":1,"method":"ping"}"#, Some(1));
    let response = |status: u16| head(&format!(r#""direction":"received","status":{status}"#));
    let ended = "{\"at\":1,\"event\":\"ended\",\"connection\":1,\"stream\":1,\"direction\":\"received\"}\n"
        .to_owned();
    let answer = passed(r#"s {"id":1,"result":{}}"#, Some(1));
    let sent = request + &message;
    let text = [opened("http"), sent.clone(), response(307), ended, sent, response(200), answer];
    let conversations = conversations(text.concat().as_bytes()).unwrap();
    let conversation = one(&conversations);
    assert_eq!((conversation.parts.len(), conversation.steps.len()), (2, 4));
    assert_eq!(conversation.response_head(&conversation.parts[0]).unwrap().0, 200);
}
