//! What an observer sees of a child process.

use refmcp_client::transport::Connector;
use refmcp_proto::engine::client::TransportError;

use crate::recording_sink::{RecordingSink, SinkEvent, outgoing};
use crate::support::{script, unhurried};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test]
async fn lines_that_are_no_messages_and_stderr_are_seen_beside_messages() {
    let server = unhurried("echo starting; echo 'no database' >&2; cat");
    let (sink, mut recorded, observer) = RecordingSink::observed();
    let transport = server.connect(sink).await.unwrap();
    assert_eq!(recorded.next().await, SinkEvent::IgnoredInput("starting".to_owned()));
    transport.clone().send(outgoing(PING));
    assert_eq!(recorded.message().await, (None, PING.to_owned()));
    transport.close().await;
    assert_eq!(recorded.rest(), [SinkEvent::Closed(TransportError::Closed)]);
    let mut lines = observer.lines();
    let stderr = lines.iter().position(|line| line == "stderr \"no database\\n\"").expect("it was read");
    lines.remove(stderr);
    let message = |word: &str| format!("{word} {PING}");
    let expected = [
        r#"received invalid "starting": not JSON"#,
        &message("sent"),
        &message("received"),
        "closed: the connection is closed",
    ];
    assert_eq!(lines[1..], expected);
}

#[tokio::test]
async fn a_line_is_seen_whole_and_one_over_the_limit_is_told_of() {
    let long = "x".repeat(2000);
    let server = script(&format!("echo {long}; printf '\\377\\n'")).max_message_size(4000);
    let (sink, mut recorded, observer) = RecordingSink::observed();
    let _transport = server.connect(sink).await.unwrap();
    recorded.next().await;
    recorded.next().await;
    let lines = observer.lines();
    assert_eq!(lines[1], format!("received invalid {long:?}: not JSON"), "the sink gets an excerpt");
    assert_eq!(lines[2], "received invalid \"\u{fffd}\": not JSON");
    let server = script(&format!("echo '{{{long}'")).max_message_size(1000);
    let (sink, mut recorded, observer) = RecordingSink::observed();
    let _transport = server.connect(sink).await.unwrap();
    assert_eq!(recorded.next().await, SinkEvent::TooLong(None, 1000));
    assert_eq!(observer.lines()[1], "received invalid \"\": longer than 1000 bytes");
}
