//! What a target is called: as it is shown, and as files know it. Neither has a secret of the target in it.

use std::fmt;

use refmcp_client::redact;
use ring::digest;

use super::{Target, UrlTransport, join_words};

/// Hexadecimal digits of a digest that tell targets apart which look alike once their secrets are hidden.
const DIGITS: usize = 16;

/// The name of a target. It displays as what may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TargetName {
    shown: String,
    key: String,
    is_command: bool,
}

impl TargetName {
    /// What identifies the target in files: what is shown, and where a secret is hidden, a digest of the whole.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// A command line of ours about the target: its words, the target where it belongs, then these options.
    pub(crate) fn command_line(&self, words: &str, options: &str) -> String {
        if self.is_command {
            return format!("{words} {options} -- {}", self.shown);
        }
        format!("{words} {} {options}", join_words(std::slice::from_ref(&self.shown)))
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Target {
    /// What it is called.
    pub(crate) fn name(&self) -> TargetName {
        let (whole, shown) = match self {
            Self::Url { url, transport } => {
                let prefix = if *transport == UrlTransport::Sse { "sse+" } else { "" };
                let whole = format!("{prefix}{url}");
                let shown = redact::url(&whole);
                (whole, shown)
            }
            Self::Command(words) => (redact::joined(words), redact::command_line(words)),
            Self::Named(name) => (name.clone(), name.clone()),
        };
        let key = if whole == shown {
            whole
        } else {
            let digest = sha256_hex(whole.as_bytes());
            format!("{shown} #{}", digest.get(..DIGITS).unwrap_or(&digest))
        };
        TargetName { shown, key, is_command: matches!(self, Self::Command(_)) }
    }
}

/// As it is shown and logged: without secrets, and such that it can be typed again where there are none.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Url { .. } => "Url",
            Self::Command(_) => "Command",
            Self::Named(_) => "Named",
        };
        write!(f, "{kind}({self})")
    }
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    digest::digest(&digest::SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Target {
        Target::Command(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn nothing_that_is_shown_or_kept_has_a_secret_in_it() {
        for (target, shown) in [
            (Target::parse("https://me:hush@example.org/mcp").unwrap(), "https://***@example.org/mcp"),
            (Target::parse("sse+http://localhost/sse?key=hush").unwrap(), "sse+http://localhost/sse?key=***"),
            (command(&["npx", "a b", "--token", "hush"]), "npx 'a b' --token ***"),
            (command(&["KEY=hush", "npx"]), "KEY=*** npx"),
        ] {
            let name = target.name();
            assert_eq!((target.to_string(), name.to_string()), (shown.to_owned(), shown.to_owned()));
            for text in [name.key(), &format!("{target:?} {name:?}")] {
                assert!(!text.contains("hush") && text.contains(shown), "{text}");
            }
            assert_ne!(name.key(), shown);
        }
    }

    #[test]
    fn targets_that_look_alike_are_told_apart() {
        let at = |word: &str| Target::parse(word).unwrap().name();
        assert_eq!(at("http://h/?k=one"), at("http://h/?k=one"));
        assert_ne!(at("http://h/?k=one").key(), at("http://h/?k=two").key());
        assert_ne!(
            command(&["x", "--key", "one"]).name().key(),
            command(&["x", "--key", "two"]).name().key()
        );
    }

    #[test]
    fn what_has_no_secret_is_known_by_what_is_shown() {
        for (target, shown) in [
            (Target::parse("http://localhost:3000/mcp").unwrap(), "http://localhost:3000/mcp"),
            (Target::parse("sse+http://localhost/sse").unwrap(), "sse+http://localhost/sse"),
            (Target::parse("name").unwrap(), "name"),
            (command(&["npx", "a b"]), "npx 'a b'"),
        ] {
            let name = target.name();
            assert_eq!((name.to_string().as_str(), name.key()), (shown, shown));
        }
        assert_eq!(command(&["npx", "a b"]).name().command_line("x", "--y"), "x --y -- npx 'a b'");
        assert_eq!(Target::Named("a b".to_owned()).name().command_line("x", "--y"), "x 'a b' --y");
    }
}
