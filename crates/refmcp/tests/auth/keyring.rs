//! The file of tokens, sealed with a key that a helper keeps as Docker's do.

use std::fs;

use serde_json::Value;

use crate::secrets::Watch;
use crate::server::Server;
use crate::user::User;

/// A helper that keeps one secret, in a file beside it.
const KEEPS: &str = r#"case $1 in
store) cat >"$0.kept" ;;
get) read -r name; grep -F "\"$name\"" "$0.kept" 2>/dev/null || { echo "credentials not found in native keychain"; exit 1; } ;;
erase) rm "$0.kept" ;;
esac"#;

/// A user with a helper and a login, the server, and the text that must not be found any more.
fn logged_in() -> (User, Server, String) {
    let (user, server) = (User::new(), Server::start(&[]));
    user.program("docker-credential-test", KEEPS);
    user.does(&["auth", "login", &server.url()]);
    let refresh_token = user.kept()["grants"][0]["value"]["refresh_token"].as_str().unwrap().to_owned();
    (user, server, refresh_token)
}

/// Where the helper keeps its secret.
const KEPT: &str = "programs/docker-credential-test.kept";

fn sealed(user: &User, helper: &str) {
    user.does(&["auth", "keyring", "on", "--helper", helper]);
    let kept = user.path(&format!("programs/docker-credential-{helper}.kept"));
    let kept: Value = serde_json::from_slice(&fs::read(kept).unwrap()).unwrap();
    Watch::of_this_test().sees(kept["Secret"].as_str().unwrap());
}

#[test]
fn with_the_key_all_works_as_before() {
    let (user, server, secret) = logged_in();
    let url = &server.url();
    let works = || {
        assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
        assert!(user.does(&["auth", "status"]).contains(url.as_str()));
    };
    assert!(user.does(&["auth", "keyring"]).contains("is not sealed: only you can read it"));
    let plain = user.kept();
    for _ in 0..2 {
        // The second time there is nothing to do.
        sealed(&user, "test");
        let text = fs::read_to_string(user.tokens()).unwrap();
        assert!(!text.contains(&secret) && !text.contains(url.as_str()), "{text}");
        assert!(user.does(&["auth", "keyring"]).contains("with a key that docker-credential-test keeps"));
        works();
    }
    user.does(&["auth", "login", url]);
    assert!(user.kept()["sealed"].is_object() && user.kept().as_object().unwrap().len() == 1);
    works();
    let off = user.does(&["auth", "keyring", "off", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&off).unwrap()["sealed"], false);
    assert!(!user.path(KEPT).exists(), "the key is forgotten");
    works();
    let kept = user.kept();
    assert_eq!(kept["grants"][0]["server"], plain["grants"][0]["server"]);
    assert_ne!(
        kept["grants"][0]["value"]["token"], plain["grants"][0]["value"]["token"],
        "by the last login"
    );
    user.does(&["auth", "logout", url]);
}

#[test]
fn a_sealed_file_moves_to_another_helper() {
    let (user, server, secret) = logged_in();
    sealed(&user, "test");
    user.program("docker-credential-other", KEEPS);
    sealed(&user, "other");
    assert!(!user.path(KEPT).exists(), "the old key is forgotten");
    assert!(!fs::read_to_string(user.tokens()).unwrap().contains(&secret));
    assert_eq!(user.does(&["call", &server.url(), "echo", "message=in"]), "in\n");
}

#[test]
fn without_its_key_the_file_stays_sealed_and_intact() {
    let (user, server, _) = logged_in();
    let url = &server.url();
    let open = Server::run(&["serve", "--port", "0"]);
    sealed(&user, "test");
    let (key, before) = (fs::read(user.path(KEPT)).unwrap(), fs::read(user.tokens()).unwrap());
    let another = String::from_utf8(key.clone()).unwrap().replace("\"Secret\":\"", "\"Secret\":\"AAAA");
    let swapped = {
        let entry: Value = serde_json::from_slice(&key).unwrap();
        let secret = entry["Secret"].as_str().unwrap();
        let first = if secret.starts_with('A') { "B" } else { "A" };
        String::from_utf8(key.clone()).unwrap().replace(secret, &format!("{first}{}", &secret[1..]))
    };
    for (kept, why) in [
        (None, "it has no such key any more"),
        (Some(another), "what it keeps is no key of ours"),
        (Some(swapped), "it was changed, or sealed with another key"),
    ] {
        match kept {
            Some(kept) => fs::write(user.path(KEPT), kept).unwrap(),
            None => fs::remove_file(user.path(KEPT)).unwrap(),
        }
        for words in [
            &["call", url, "echo", "message=in"][..],
            &["auth", "status"],
            &["auth", "login", url],
            &["auth", "logout", url],
            &["auth", "keyring", "off"],
        ] {
            let came = user.run(words);
            assert_ne!(came.code, 0, "{words:?}: {came:?}");
            let told =
                "tokens.json is sealed with a key that docker-credential-test keeps, and stays closed: ";
            assert!(came.err.contains(told) && came.err.contains(why), "{words:?}: {came:?}");
        }
        let said = user.fails(1, &["auth", "keyring", "on", "--helper", "test"]);
        assert!(said.contains(why), "{said}");
        let came = user.run(&["call", &open.url(), "echo", "message=in"]);
        assert_eq!((came.code, came.out.as_str()), (0, "in\n"), "where no token is needed: {came:?}");
        assert!(came.err.contains("the store of tokens fails"), "{came:?}");
        assert_eq!(fs::read(user.tokens()).unwrap(), before, "{why}");
    }
    fs::write(user.path(KEPT), key).unwrap();
    assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
}

#[test]
fn a_failing_helper_changes_nothing() {
    let (user, server, _) = logged_in();
    let before = fs::read(user.tokens()).unwrap();
    user.program(
        "docker-credential-loses",
        "cat >/dev/null; [ $1 = store ] || { echo nothing there; exit 1; }",
    );
    user.program("docker-credential-babbles", "cat >/dev/null; echo hello");
    for (helper, why) in [
        ("not-there", "cannot start docker-credential-not-there"),
        ("loses", "docker-credential-loses get failed (exit status: 1): nothing there"),
        ("babbles", "docker-credential-babbles gave no secret"),
        ("../sh", "is no name of a helper"),
    ] {
        let said = user.fails(1, &["auth", "keyring", "on", "--helper", helper]);
        assert!(said.contains(why), "{said}");
        assert_eq!(fs::read(user.tokens()).unwrap(), before, "{helper}");
    }
    assert_eq!(user.does(&["call", &server.url(), "echo", "message=in"]), "in\n");
}

#[test]
fn the_key_is_asked_for_once() {
    let (user, server, _) = logged_in();
    sealed(&user, "test");
    user.program("docker-credential-test", &format!("echo asked >>\"$0.asked\"\n{KEEPS}"));
    let asked = || fs::read_to_string(user.path("programs/docker-credential-test.asked")).unwrap_or_default();
    user.does(&["call", &server.url(), "echo", "message=in"]);
    assert_eq!(asked(), "asked\n");
    // Also by one that ends in want of it.
    fs::remove_file(user.path(KEPT)).unwrap();
    user.fails(3, &["call", &server.url(), "echo", "message=in"]);
    assert_eq!(asked(), "asked\nasked\n");
}
