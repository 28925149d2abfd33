//! What comes over the pipes of a server, and what does not.

use std::fs;
use std::time::Duration;

use refmcp_proto::engine::client::TransportError;
use tokio::time::timeout;

use crate::recording_sink::{LONG, SinkEvent};
use crate::support::{SAY_GROUP, script, start, unhurried};

#[tokio::test]
async fn messages_go_both_ways_in_order() {
    let mut running = start(&unhurried("cat")).await;
    for n in 0..1000 {
        running.send(format!("{{\"n\":{n}}}"));
    }
    for n in 0..1000 {
        assert_eq!(running.message().await, format!("{{\"n\":{n}}}"));
    }
    let took = running.close().await;
    assert!(took < LONG / 4, "{took:?}: it ends as soon as its input does");
    assert_eq!(running.rest(), [SinkEvent::Closed(TransportError::Closed)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_may_send_at_once() {
    let mut running = start(&unhurried("cat")).await;
    let senders = (0..8).map(|sender| {
        let transport = running.transport.clone();
        tokio::spawn(async move {
            for n in 0..500 {
                transport
                    .clone()
                    .send(crate::recording_sink::outgoing(format!("{{\"from\":{sender},\"n\":{n}}}")));
                tokio::task::yield_now().await;
            }
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await.unwrap();
    }
    let mut next = [0; 8];
    for _ in 0..8 * 500 {
        let text = running.message().await;
        let numbers: Vec<usize> =
            text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
        assert_eq!(next[numbers[0]], numbers[1], "each sender's messages stay in order");
        next[numbers[0]] += 1;
    }
    running.transport.clone().close().await;
}

#[tokio::test]
async fn messages_can_be_sent_outside_of_a_runtime() {
    let mut running = start(&unhurried("cat")).await;
    let transport = running.transport.clone();
    std::thread::spawn(move || transport.send(crate::recording_sink::outgoing("{}"))).join().unwrap();
    assert_eq!(running.message().await, "{}");
    running.close().await;
}

#[tokio::test]
async fn a_line_over_the_limit_is_reported_and_the_next_one_read() {
    let text = r#"printf '{"long":"%02000d"}\n{"short":1}\n' 0; cat >/dev/null"#;
    let mut running = start(&script(text).max_message_size(1000)).await;
    assert_eq!(running.next().await, SinkEvent::TooLong(None, 1000));
    assert_eq!(running.message().await, r#"{"short":1}"#);
    running.close().await;
}

#[tokio::test]
async fn a_line_without_end_takes_no_memory() {
    let text = "head -c 268435456 /dev/zero; echo; echo {}; cat >/dev/null";
    let mut running = start(&script(text).max_message_size(1 << 20)).await;
    assert_eq!(running.next().await, SinkEvent::TooLong(None, 1 << 20));
    assert_eq!(running.message().await, "{}");
    running.close().await;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 400 << 10, "{kilobytes} kB");
}

#[tokio::test]
async fn lines_that_are_no_messages_are_ignored_input() {
    let text = r#"printf 'Server starts...\n[INFO] up\n{"a":1}\n\n  \r\n[{"b":1}]\r\n\377\376\n42\n"text"\n {"c":1}'"#;
    let mut running = start(&script(text)).await;
    let ignored_input = |text: &str| SinkEvent::IgnoredInput(text.to_owned());
    let message = |text: &str| SinkEvent::Message(None, text.to_owned());
    let expected = [
        ignored_input("Server starts..."),
        ignored_input("[INFO] up"),
        message(r#"{"a":1}"#),
        message(r#"[{"b":1}]"#),
        ignored_input("\u{fffd}\u{fffd}"),
        ignored_input("42"),
        ignored_input("\"text\""),
        message(r#" {"c":1}"#),
    ];
    for event in expected {
        assert_eq!(running.next().await, event);
    }
    assert_eq!(running.why_broken().await, "the server ended with exit status 0");
}

#[tokio::test]
async fn a_server_that_never_reads_is_heard_and_closed_all_the_same() {
    let mut stuck =
        start(&script(&format!(r#"{SAY_GROUP} while :; do sleep 0.05; echo '{{"tick":1}}'; done"#))).await;
    let group = stuck.group().await;
    for _ in 0..30 {
        stuck.send(vec![b'x'; 100 << 10]);
    }
    let mut other = start(&unhurried("cat")).await;
    other.send("{}");
    assert_eq!(other.message().await, "{}", "other servers are not affected");
    let room = stuck.transport.ready().expect("far too much is queued");
    assert!(timeout(Duration::from_millis(100), room).await.is_err(), "it does not read");
    assert_eq!(stuck.message().await, r#"{"tick":1}"#, "its output is read though it does not read");
    stuck.close().await;
    assert!(group.members().is_empty());
    other.close().await;
}

#[tokio::test]
async fn room_comes_when_a_slow_server_reads() {
    let mut slow = start(&unhurried("read line; cat >/dev/null; echo '{}'")).await;
    for _ in 0..30 {
        slow.send(vec![b'x'; 100 << 10]);
    }
    let room = slow.transport.ready().expect("far too much is queued");
    timeout(LONG, room).await.expect("room comes");
    slow.close().await;
    assert_eq!(slow.rest().first(), Some(&SinkEvent::Closed(TransportError::Closed)));
}

#[tokio::test]
async fn backpressure_ends_with_the_server() {
    let mut running = start(&script("read line; exit 3")).await;
    for _ in 0..30 {
        running.send(vec![b'x'; 100 << 10]);
    }
    let transport = running.transport.clone();
    if let Some(room) = transport.ready() {
        timeout(LONG, room).await.expect("there is nothing left to wait for");
    }
    running.transport.clone().close().await;
    assert_eq!(running.why_broken().await, "the server ended with exit status 3");
}

#[tokio::test]
async fn a_server_that_says_nothing_closes_in_order() {
    let mut running = start(&unhurried("cat >/dev/null")).await;
    running.send("{}");
    assert!(timeout(Duration::from_millis(100), running.next()).await.is_err(), "it says nothing");
    let took = running.close().await;
    assert!(took < LONG / 4, "{took:?}");
}

#[tokio::test]
async fn the_last_message_is_written_before_the_input_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("seen");
    let running = start(&unhurried(&format!("cat > {}", path.display()))).await;
    for n in 0..10_000 {
        running.send(format!("{{\"n\":{n}}}"));
    }
    running.close().await;
    assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 10_000);
}

#[tokio::test]
async fn a_server_that_closes_its_input_is_of_no_more_use() {
    let mut running = start(&script(&format!("exec <&-; {SAY_GROUP} sleep 1000"))).await;
    let group = running.group().await;
    running.send("{}");
    let why = running.why_broken().await;
    assert!(why.starts_with("the server takes no more messages"), "{why}");
    group.ends().await;
}

#[tokio::test]
async fn a_server_that_closes_its_output_is_of_no_more_use() {
    let mut running = start(&script(&format!("{SAY_GROUP} exec >&-; sleep 1000"))).await;
    let group = running.group().await;
    assert_eq!(running.why_broken().await, "the server closed its output");
    group.ends().await;
}
