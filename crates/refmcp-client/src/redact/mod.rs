//! Redaction: a server's command line or URL as it may be shown, logged and written to files, without the secrets in it.
//!
//! A value is taken for a secret by where it stands (an environment variable, a header, the user or the query of a URL,
//! what follows an option such as `--token`) or by its shape (a long random word). It is replaced by [`MASK`], whatever
//! its length. Redaction cannot know every secret, and hides some values that are none.

mod name;
mod script;
mod secrets;
mod url;
mod words;

pub use self::url::{target, url};
pub use secrets::Secrets;

use refmcp_transport::header::is_public;
use words::{Mode, masked};

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// The words of a command, each without the secrets in it.
///
/// ```
/// use refmcp_client::redact;
///
/// let shown = redact::words(&["npx", "server", "--api-key", "hush", "https://me:hush@example.org/?key=hush"]);
/// assert_eq!(shown, ["npx", "server", "--api-key", "***", "https://***@example.org/?key=***"]);
/// ```
///
/// A value that is a secret in one place is masked wherever it stands in the words.
pub fn words<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    let secrets = Secrets::default().with_words(words);
    by_place(words).iter().map(|word| secrets.masked(word).into_owned()).collect()
}

/// The words, each without the secrets that its place or its shape tells.
fn by_place<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    masked(words.iter().map(AsRef::as_ref), Mode::Shown, 0)
}

/// The words of a command that a person is asked to agree to. A value that a shell could do something with, or that
/// could be a path, is left as it is: agreeing to what is hidden would be worth nothing.
pub fn words_to_confirm<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    masked(words.iter().map(AsRef::as_ref), Mode::Confirmed, 0)
}

/// One word without the secrets in it: a URL, `NAME=VALUE`, `--option=VALUE`.
pub fn word(word: &str) -> String {
    words(&[word]).concat()
}

/// A command as one line, without the secrets in it and quoted as for a shell.
pub fn command_line<S: AsRef<str>>(words: &[S]) -> String {
    joined(&self::words(words))
}

/// The value of an HTTP header field as it may be shown: masked unless the name says that it is no secret.
///
/// ```
/// use refmcp_client::redact;
///
/// assert_eq!(redact::header("authorization", "Bearer hush"), "***");
/// assert_eq!(redact::header("x-any-other", "hush"), "***");
/// assert_eq!(redact::header("content-type", "application/json"), "application/json");
/// ```
pub fn header<'a>(name: &str, value: &'a str) -> &'a str {
    // An argument in `Mcp-Param-Token` has a public beginning.
    if is_public(name) && !name::is_secret(name) { value } else { MASK }
}

/// Words as one line, quoted as for a shell.
pub fn joined<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// A word as a shell would want it. A mask is left alone: no shell has any use for it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=+:,./@%".contains(c);
    if !word.is_empty() && word.replace(MASK, "").chars().all(plain) {
        return word.to_owned();
    }
    if word.chars().any(char::is_control) {
        return format!("{word:?}");
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests;
