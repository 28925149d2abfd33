//! What servers write to their standard error.

use std::sync::{Arc, Mutex};

use refmcp_client::child::{StderrLine, StderrTo};

use crate::support::{script, start};

/// Lines, bytes of lines with their ends, and bytes left out.
#[derive(Debug, Default)]
struct Seen {
    lines: Vec<String>,
    bytes: u64,
    left_out: u64,
}

fn watch() -> (Arc<Mutex<Seen>>, StderrTo) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let writing = seen.clone();
    let hand_on = move |line: StderrLine<'_>| {
        let mut seen = writing.lock().unwrap();
        match line {
            StderrLine::Line(text) => {
                seen.bytes += text.len() as u64 + 1;
                seen.lines.push(text.to_owned());
            }
            StderrLine::Omitted(bytes) => seen.left_out += bytes,
        }
    };
    (seen, StderrTo::Lines(Arc::new(hand_on)))
}

#[tokio::test]
async fn lines_are_handed_on() {
    let (seen, to) = watch();
    let text = r"printf 'one\ntwo\r\n\n\377\nlast' >&2; exit 1";
    let mut running = start(&script(text).stderr(to)).await;
    let why = running.why_broken().await;
    assert!(why.contains("it last wrote:\n  one\n  two\n") && why.ends_with("\n  last"), "{why}");
    assert_eq!(seen.lock().unwrap().lines, ["one", "two", "", "\u{fffd}", "last"]);
}

#[tokio::test]
async fn a_long_line_is_cut() {
    let (seen, to) = watch();
    let text = r"head -c 100000 /dev/zero | tr '\0' x >&2; echo >&2; echo next >&2";
    let mut running = start(&script(text).stderr(to)).await;
    running.why_broken().await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.lines.iter().map(String::len).collect::<Vec<_>>(), [8192, 4]);
    assert_eq!(seen.left_out, 100_000 - 8192);
}

#[tokio::test]
async fn a_flood_of_stderr_is_limited() {
    const FLOOD: u64 = 100_000_000;
    let (seen, to) = watch();
    let text = format!("yes complaint | head -c {FLOOD} >&2; cat");
    let mut running = start(&script(&text).stderr(to)).await;
    running.send("{}");
    assert_eq!(running.message().await, "{}", "it gets to its work only when all of it is read");
    running.close().await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.bytes + seen.left_out, FLOOD, "every byte is accounted for");
    assert!(seen.left_out > FLOOD / 2, "{} of {FLOOD}", seen.left_out);
}

#[tokio::test]
async fn what_is_discarded_still_explains_an_end() {
    let text = "yes complaint | head -c 1000000 >&2; echo finally >&2; exit 7";
    let mut running = start(&script(text).stderr(StderrTo::Discard)).await;
    let why = running.why_broken().await;
    assert!(why.starts_with("the server ended with exit status 7; it last wrote:\n  …"), "{why}");
    assert!(why.ends_with("finally"), "{why}");
    assert!(why.chars().count() < 700, "{}", why.len());
}

#[tokio::test]
async fn ours_may_be_theirs() {
    let text = r#"[ "$(readlink /proc/self/fd/2)" = "$EXPECTED" ] && echo '{"same":1}'"#;
    let ours = std::fs::read_link("/proc/self/fd/2").unwrap();
    let mut running = start(&script(text).env("EXPECTED", ours).stderr(StderrTo::Inherit)).await;
    assert_eq!(running.message().await, r#"{"same":1}"#);
    running.close().await;
}

#[tokio::test]
async fn secrets_that_it_was_given_are_not_quoted() {
    let text = "echo key $API_KEY, option $1 >&2; exit 1";
    let child = script(text).args(["--token", "in-option"]).env("API_KEY", "hush");
    let why = start(&child).await.why_broken().await;
    assert!(why.ends_with("; it last wrote: key ***, option ***"), "{why}");
    let why = start(&child.quote_stderr(false)).await.why_broken().await;
    assert_eq!(why, "the server ended with exit status 1");
}
