//! Recordings and arguments that cannot be used, and what is said of them.

use crate::record;
use crate::support::User;

#[test]
fn recordings_that_cannot_be_used_are_named() {
    let user = User::new();
    let opened = r#"{"at":1,"event":"opened","connection":1,"side":"client","transport":"stdio","peer":""}"#;
    let heard =
        r#"{"at":1,"event":"message","connection":1,"direction":"received","message":{"id":1,"result":{}}}"#;
    user.write("no.jsonl", &format!("{opened}\nhello\n"));
    user.write("empty.jsonl", "");
    user.write("heard.jsonl", &format!("{opened}\n{heard}\n"));
    user.write(
        "sent.jsonl",
        &format!(
            "{opened}\n{}\n",
            heard.replace("received", "sent").replace("\"result\":{}", "\"method\":\"ping\"")
        ),
    );
    for (words, code, why) in [
        (&["replay", "none.jsonl", "--stdio"][..], 1, "cannot read none.jsonl: "),
        (&["replay", "no.jsonl", "--stdio"], 1, "no.jsonl: line 2 of the recording is no event: "),
        (&["replay", "empty.jsonl", "--stdio"], 7, "empty.jsonl has no messages"),
        (&["replay", "heard.jsonl", "--", "cat"], 7, "heard.jsonl has no message of a client to send"),
        (&["replay", "sent.jsonl", "--stdio"], 7, "sent.jsonl has no request that was answered"),
        (&["replay", "heard.jsonl", "--diff", "no.jsonl"], 1, "no.jsonl: line 2"),
    ] {
        let ended = user.run(words);
        assert_eq!((ended.code, ended.out.as_str()), (code, ""), "{words:?}: {ended:?}");
        assert!(ended.err.contains(why), "{words:?}: {}", ended.err);
    }
}

#[test]
fn arguments_that_do_not_fit_are_explained() {
    let user = User::new();
    record(&user, "2025-06-18", "a.jsonl");
    for (words, why) in [
        (&["replay", "a.jsonl"][..], "the server to replay against"),
        (&["replay", "a.jsonl", "http://127.0.0.1:1/mcp", "--stdio"], "not both"),
        (&["replay", "a.jsonl", "--serve", "http://x"], "expected an address such as 127.0.0.1:3000"),
        (&["replay", "a.jsonl", "--serve", "--stdio"], "cannot be used with"),
        (&["replay", "a.jsonl", "--stdio", "--allow-host", "x"], "--serve"),
        (&["replay", "a.jsonl", "--diff", "a.jsonl", "--ignore", "text"], "begins with /"),
        (&["replay", "a.jsonl", "--diff", "a.jsonl", "-o", "html"], "text, json or jsonl"),
        (&["replay", "-", "--diff", "-"], "standard input can be read once"),
    ] {
        let ended = user.run(words);
        assert!(ended.code == 1 && ended.out.is_empty(), "{words:?}: {ended:?}");
        assert!(ended.err.contains(why), "{words:?}: {}", ended.err);
    }
}
