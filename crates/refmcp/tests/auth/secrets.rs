//! Nothing that opens a door is in any log, however much is logged. Everything that these tests start logs all it can;
//! each part of a test tells its [`Watch`] what it has heard and which secrets it has seen, and when the last of them
//! goes, the test fails if one of the secrets was heard.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use refmcp_testkit::leaks::{Secrets, level};
use serde_json::Value;

use crate::server::Server;
use crate::user::User;

thread_local! {
    /// Tests have a thread each, or come one after the other.
    static OF_THIS_TEST: RefCell<Weak<Watch>> = const { RefCell::new(Weak::new()) };
}

/// What was seen and heard in a test.
#[derive(Debug, Default)]
pub(crate) struct Watch(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    secrets: Secrets,
    /// Of what stands behind a challenge only the digest is known.
    challenges: BTreeSet<String>,
    /// What was said, and by which process.
    heard: Vec<(String, String)>,
}

/// Words of a command line whose next word is a file with a secret in it, or the secret.
const FILES: [&str; 4] = ["--client-secret-file", "--client-key", "--assertion-file", "--id-token-file"];
const VALUES: [&str; 2] = ["--auth-client", "-H"];

impl Watch {
    /// The one that all who are in this test share.
    pub(crate) fn of_this_test() -> Arc<Self> {
        OF_THIS_TEST.with_borrow_mut(|of_this_test| {
            of_this_test.upgrade().unwrap_or_else(|| {
                let watch = Arc::new(Self::default());
                *of_this_test = Arc::downgrade(&watch);
                watch
            })
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Seen) -> T) -> T {
        work(&mut self.0.lock())
    }

    /// Has seen a secret.
    pub(crate) fn sees(&self, secret: &str) {
        self.with(|seen| seen.secrets.add(secret));
    }

    /// Has seen the words of a command.
    pub(crate) fn sees_words(&self, words: &[&str]) {
        for pair in words.windows(2) {
            let [name, value] = pair else { continue };
            if FILES.contains(name) {
                // One that is not there has no secret in it. What spans lines is not logged as it is.
                let text = std::fs::read_to_string(value).unwrap_or_default();
                text.lines().filter(|line| !line.starts_with("-----")).for_each(|line| self.sees(line));
            } else if VALUES.contains(name) {
                self.sees(value.rsplit([' ', ':']).next().unwrap_or_default());
            }
        }
    }

    /// Has seen addresses that a browser was sent to.
    pub(crate) fn sees_addresses(&self, text: &str) {
        self.with(|seen| {
            seen.secrets.add_addresses(text);
            let parts = text.split(['?', '&', '\n']);
            let challenges = parts.filter_map(|part| part.strip_prefix("code_challenge="));
            seen.challenges.extend(challenges.map(str::to_owned));
        });
    }

    /// Has seen what is kept: the texts of it that must not be seen.
    pub(crate) fn sees_kept(&self, kept: &Value) {
        match kept {
            Value::Object(members) => {
                for (name, value) in members {
                    match (name.as_str(), value) {
                        ("token" | "refresh_token" | "pkcs8" | "client_secret", Value::String(text)) => {
                            self.sees(text);
                        }
                        _ => self.sees_kept(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.sees_kept(item)),
            _ => {}
        }
    }

    /// Has heard all that a process has said. Gives what is said where less is logged.
    pub(crate) fn hears(&self, who: &str, said: &str) -> String {
        let mut is_logged = false;
        let told = said.split_inclusive('\n').filter(|line| {
            is_logged = matches!(level(line), Some("TRACE" | "DEBUG" | "INFO")) || is_logged && goes_on(line);
            !is_logged
        });
        let told: String = told.collect();
        // The page to visit is shown to the person alone.
        let (pages, rest): (Vec<&str>, Vec<&str>) =
            said.split_inclusive('\n').partition(|line| line.starts_with("  http"));
        self.sees_addresses(&pages.concat());
        self.with(|seen| seen.heard.push((who.to_owned(), rest.concat())));
        told
    }

    /// Has seen a terminal, with what was typed there.
    pub(crate) fn sees_terminal(&self, shown: &str) {
        let plain = without_colours(shown).replace('\r', "");
        let (logged, told): (Vec<&str>, Vec<&str>) =
            plain.split_inclusive('\n').partition(|line| level(line).is_some());
        self.sees_addresses(&told.concat());
        self.with(|seen| seen.heard.push(("a terminal".to_owned(), logged.concat())));
    }

    /// What was heard that must not be.
    fn leak(&self) -> Option<String> {
        self.with(|seen| {
            let mut heard = seen.heard.iter();
            heard.find_map(|(who, said)| {
                let leak = seen.secrets.leak(said).or_else(|| verifier(said, &seen.challenges))?;
                Some(format!("of {who}: {leak}"))
            })
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // A test that has failed tells of its own trouble.
        if !std::thread::panicking()
            && let Some(leak) = self.leak()
        {
            panic!("{leak}");
        }
    }
}

/// Whether a line is the second one of a step that is logged.
fn goes_on(line: &str) -> bool {
    line.starts_with("  → ")
}

fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        plain + &part[end..]
    })
}

/// A word whose digest is one of these.
fn verifier(said: &str, challenges: &BTreeSet<String>) -> Option<String> {
    if challenges.is_empty() {
        return None;
    }
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    let mut words = said.split(|c: char| !is_of_word(c)).filter(|word| (43..=128).contains(&word.len()));
    let found = words.find(|word| challenges.contains(&refmcp_auth::pkce::challenge(word)))?;
    Some(format!("a verifier is in the log: {found}"))
}

#[test]
fn no_log_has_a_secret_in_it() {
    let options = ["--auth-client", "robot:a-secret-of-the-robot", "--auth-introspect"];
    let (user, server) = (User::new(), Server::start(&options));
    let url = server.url();
    let secret = user.write("secret", "a-secret-of-the-robot");
    let robot = ["--grant", "client-credentials", "--client-id", "robot", "--client-secret-file", &secret];
    let explain = ["--explain", "--log", "trace"];
    for words in [
        [&["auth", "login", &url, "--dpop"][..], &explain].concat(),
        [&["auth", "login", &url][..], &explain].concat(),
        [&["call", &url, "echo", "message=hello"][..], &explain].concat(),
        [&["call", &url, "echo", "message=hello", "--protocol-version", "legacy"][..], &explain].concat(),
        [&["auth", "login", &url][..], &robot, &explain].concat(),
        [&["auth", "status", "-o", "json"][..], &explain].concat(),
        [&["auth", "logout", &url][..], &explain].concat(),
    ] {
        user.does(&words);
    }
    drop(server);
    let watch = Watch::of_this_test();
    watch.with(|seen| {
        // Two codes and states, three tokens, what renews two of them, a key, a secret.
        assert!(seen.secrets.len() >= 11, "{:?}", seen.secrets);
        assert_eq!(seen.challenges.len(), 2);
        for who in ["the server", "refmcp auth login", "refmcp call", "refmcp auth logout"] {
            let logs = |(name, said): &(String, String)| name.starts_with(who) && said.contains(" DEBUG ");
            assert!(seen.heard.iter().any(logs), "{who}");
        }
    });
}

/// What is told when a test with this watch ends.
fn ends_with(watch: Arc<Watch>) -> Option<String> {
    let ended = catch_unwind(AssertUnwindSafe(|| drop(watch)));
    Some(*ended.err()?.downcast::<String>().unwrap())
}

#[test]
fn a_leaked_secret_fails_the_test() {
    let verifier = refmcp_auth::pkce::verifier().unwrap();
    let challenge = refmcp_auth::pkce::challenge(verifier.reveal());
    let address = format!("http://h/authorize?state=S0123456789abcdef&code_challenge={challenge}");
    for said in ["nothing", "it is hush!", "S0123456789abcdef", "Bearer S0me0ther0ne12345", verifier.reveal()]
    {
        let watch = Watch::of_this_test();
        watch.sees("hush");
        let told = watch.hears("a process", &format!("Log in here:\n  {address}\n"));
        assert!(told.contains(&challenge), "{told}");
        watch.hears("a process", &format!("2026-01-01T00:00:00.000000Z TRACE x: {said}\n"));
        let told = ends_with(watch);
        assert_eq!(told.is_some(), said != "nothing", "{said}: {told:?}");
        assert!(told.is_none_or(|told| told.starts_with("of a process: a")), "{said}");
    }
}

#[test]
fn logs_of_the_server_and_its_users_are_searched() {
    for logged in ["a client has registered", "a step of the login"] {
        let (user, server) = (User::new(), Server::start(&[]));
        user.does(&["auth", "login", &server.url()]);
        let watch = Watch::of_this_test();
        drop((user, server));
        watch.sees(logged);
        assert!(ends_with(watch).is_some_and(|told| told.contains(logged)), "{logged}");
    }
}

#[test]
fn log_lines_are_told_from_messages_to_people() {
    let watch = Watch::default();
    let said =
        "Hello\n2026-01-01T00:00:00.000000Z TRACE a: b\n  → c\n2026-01-01T00:00:00.000000Z  WARN c: d\nBye\n";
    let told = watch.hears("a process", said);
    assert_eq!(told, "Hello\n2026-01-01T00:00:00.000000Z  WARN c: d\nBye\n");
    watch.sees_terminal("Address: http://h/?code=C0123456789abcdef\r\n\x1b[2m2026-01-01T00:00:00.000000Z\x1b[0m \x1b[35mTRACE\x1b[0m x\r\n");
    watch.with(|seen| {
        assert_eq!(seen.secrets.len(), 1);
        assert_eq!(seen.heard.last().unwrap().1, "2026-01-01T00:00:00.000000Z TRACE x\n");
    });
}
