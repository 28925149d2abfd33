//! What `--yes` does not agree to is said.

use crate::{User, scripted};

#[test]
fn what_is_declined_is_told_with_the_reason() {
    let user = User::new();
    for version in ["2025-11-25", "2026-07-28"] {
        let ended =
            user.with_stdio(&["call", "--protocol-version", version, "--yes", "ask_user", "form=all"]);
        assert!(
            ended.err.contains("refmcp: declined the form \"One field of every kind.\""),
            "{version}: {ended:?}"
        );
        assert!(ended.err.contains("field \"name\" is required"), "{version}: {ended:?}");
        let ended =
            user.with_stdio(&["call", "--protocol-version", version, "--yes", "ask_user", "form=confirm"]);
        assert!(ended.code == 0 && ended.err.is_empty(), "{version}: {ended:?}");
    }
}

#[test]
fn what_was_not_offered_says_which_option_offers_it() {
    let user = User::new();
    for (words, hint) in [
        (&["ask_model", "prompt=x", "--yes"][..], "give --sampler COMMAND"),
        (&["ask_user", "form=confirm"], "give --yes to accept forms with their defaults"),
        (&["list_roots"], "give --root DIR"),
    ] {
        let words: Vec<&str> = ["call"].iter().chain(words).copied().collect();
        let ended = user.with_stdio(&words);
        assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{words:?}: {ended:?}");
        assert!(ended.err.contains(hint), "{words:?}: {ended:?}");
    }
    // In older revisions a server may ask all the same.
    let list = r#""result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
    let call = r#""result":{"content":[]}"#;
    let server = scripted(r#"{"tools":{}}"#, &[("tools/list", list), ("tools/call", call)]).replace(
        "printf '{\"jsonrpc\"",
        r#"case "$line" in *tools/call*) echo '{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}' ;; esac
  printf '{"jsonrpc""#,
    );
    let ended = user.with_script(&["call", "--yes", "t"], &server);
    assert!(
        ended.err.contains("its request sampling/createMessage, which this client did not offer"),
        "{ended:?}"
    );
}

#[test]
fn web_pages_are_not_visited_by_a_script() {
    let user = User::new();
    let ended = user.with_stdio(&["call", "--yes", "ask_user", "form=url"]);
    assert!(ended.err.contains("declined the page http"), "{ended:?}");
    assert!(ended.err.contains("--yes opens no web pages"), "{ended:?}");
}
