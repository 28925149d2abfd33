//! How servers end, by themselves and by us; nothing of them is left.

use std::time::Duration;

use refmcp_client::child::ChildProcess;
use refmcp_proto::engine::client::TransportError;

use crate::recording_sink::SinkEvent;
use crate::support::{SAY_GROUP, script, start, unhurried};

#[tokio::test]
async fn a_server_that_ends_says_how() {
    let table = [
        ("read line; exit 0", "the server ended with exit status 0"),
        ("read line; exit 1", "the server ended with exit status 1"),
        ("read line; kill -SEGV $$", "the server was ended by signal 11 (SIGSEGV)"),
        ("read line; kill -KILL $$", "the server was ended by signal 9 (SIGKILL)"),
        (
            "read line; echo no config >&2; exit 2",
            "the server ended with exit status 2; it last wrote: no config",
        ),
        (
            r"read line; printf 'a\n\033[31mbad\033[0m\n' >&2; exit 2",
            "the server ended with exit status 2; it last wrote:\n  a\n  \\u{1b}[31mbad\\u{1b}[0m",
        ),
    ];
    for (text, expected) in table {
        let mut running = start(&script(text)).await;
        running.send("{}");
        let why = running.why_broken().await;
        assert!(why.starts_with(expected), "{why}");
        running.close().await;
        assert_eq!(running.rest(), [], "it is told once");
    }
}

#[tokio::test]
async fn the_last_message_of_a_server_comes_before_its_end() {
    let text = "i=0; while [ $i -lt 1000 ]; do echo \"{\\\"n\\\":$i}\"; i=$((i+1)); done; exit 1";
    let mut running = start(&script(text)).await;
    for n in 0..1000 {
        assert_eq!(running.message().await, format!("{{\"n\":{n}}}"));
    }
    assert_eq!(running.why_broken().await, "the server ended with exit status 1");
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipes_does_not_delay_the_end() {
    let mut running = start(&script(&format!("sleep 1000 & {SAY_GROUP} exit 0"))).await;
    let group = running.group().await;
    assert_eq!(running.why_broken().await, "the server ended with exit status 0");
    group.ends().await;
}

#[tokio::test]
async fn grandchildren_end_with_a_server_that_ends_in_order() {
    let mut running = start(&script(&format!("sleep 1000 & sleep 1001 & {SAY_GROUP} cat >/dev/null"))).await;
    let group = running.group().await;
    assert!(group.members().len() >= 3);
    let took = running.close().await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(group.members(), [0; 0]);
}

#[tokio::test]
async fn a_server_that_ignores_the_end_of_its_input_is_terminated() {
    let text =
        format!("{SAY_GROUP} trap 'echo {{\\\"bye\\\":1}}; exit 0' TERM; while :; do sleep 0.05; done");
    let mut running = start(&script(&text)).await;
    let group = running.group().await;
    let took = running.close().await;
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(2), "{took:?}");
    assert_eq!(group.members(), [0; 0]);
    let last =
        [SinkEvent::Closed(TransportError::Closed), SinkEvent::Message(None, r#"{"bye":1}"#.to_owned())];
    assert_eq!(running.rest(), last, "it was told, and not killed");
}

#[tokio::test]
async fn a_server_that_ignores_sigterm_is_killed() {
    let text =
        format!("trap '' TERM INT HUP; (while :; do sleep 1; done) & {SAY_GROUP} while :; do sleep 1; done");
    let mut running = start(&script(&text)).await;
    let group = running.group().await;
    let took = running.close().await;
    assert!(took >= Duration::from_millis(600) && took < Duration::from_secs(3), "{took:?}");
    group.ends().await;
}

#[tokio::test]
async fn by_default_an_end_takes_four_seconds_at_most() {
    let text = format!("trap '' TERM; {SAY_GROUP} while :; do sleep 0.1; done");
    let mut running = start(&ChildProcess::new("sh").args(["-c", &text])).await;
    let group = running.group().await;
    let took = running.close().await;
    assert!(took >= Duration::from_secs(4) && took < Duration::from_secs(6), "{took:?}");
    group.ends().await;
}

#[tokio::test]
async fn a_dropped_transport_ends_its_server() {
    let text = format!("trap '' TERM; sleep 1000 & {SAY_GROUP} while :; do sleep 1; done");
    let mut running = start(&script(&text)).await;
    let group = running.group().await;
    drop(running);
    group.ends().await;
}

#[test]
fn a_runtime_that_is_dropped_ends_its_servers() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (group, running) = runtime.block_on(async {
        let mut running = start(&script(&format!("trap '' TERM; sleep 1000 & {SAY_GROUP} sleep 1000"))).await;
        (running.group().await, running)
    });
    assert!(!group.members().is_empty());
    drop(runtime);
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    other.block_on(async {
        // A runtime reaps what another left over; here there is but this one.
        tokio::time::timeout(crate::recording_sink::LONG, running.transport.clone().close()).await.unwrap();
        start(&script("exit 0")).await.why_broken().await;
        group.ends().await;
    });
}

#[tokio::test]
async fn closing_twice_and_at_once_is_closing_once() {
    let mut running = start(&unhurried("cat")).await;
    let (transport, again) = (running.transport.clone(), running.transport.clone());
    tokio::join!(transport.close(), again.close());
    running.close().await;
    running.send("{}");
    assert_eq!(running.rest(), [SinkEvent::Closed(TransportError::Closed)]);
}

#[tokio::test]
async fn a_close_goes_on_when_its_future_is_dropped() {
    let mut running =
        start(&script(&format!("trap '' TERM; {SAY_GROUP} while :; do sleep 0.05; done"))).await;
    let group = running.group().await;
    let closing = running.transport.clone().close();
    assert!(tokio::time::timeout(Duration::from_millis(10), closing).await.is_err());
    group.ends().await;
}
