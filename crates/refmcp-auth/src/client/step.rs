//! What a flow did, for people who want to know.

use std::fmt;

use serde::Serialize;
use url::Url;

/// One step. No secret is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What was done.
    pub did: String,
    /// Where, without the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What came of it.
    pub came: String,
    /// What follows from that, if anything does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
}

impl Step {
    /// A step without a place.
    pub fn new(did: impl Into<String>, came: impl Into<String>) -> Self {
        Self { did: did.into(), url: None, came: came.into(), then: None }
    }

    /// The same at a place. Queries are left out: they may hold what must not be shown.
    #[must_use]
    pub fn at(self, url: &Url) -> Self {
        Self { url: Some(place(url)), ..self }
    }

    /// The same with what follows.
    #[must_use]
    pub fn then(self, then: impl Into<String>) -> Self {
        Self { then: Some(then.into()), ..self }
    }
}

/// A URL as it may be shown: without query, fragment and passwords, and not longer than a person reads.
pub(crate) fn place(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // URLs that can hold no password have none.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    brief(url.as_str())
}

/// Somebody else's words as they may be shown: one line, not too long.
pub(crate) fn brief(text: &str) -> String {
    const LONGEST: usize = 200;
    let line: String =
        text.chars().take(LONGEST).map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
    if text.chars().nth(LONGEST).is_some() { line + "…" } else { line }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.did)?;
        if let Some(url) = &self.url {
            write!(f, " {url}")?;
        }
        write!(f, ": {}", self.came)?;
        match &self.then {
            Some(then) => write!(f, "\n  → {then}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_show_no_queries_and_no_long_words() {
        let url = Url::parse("https://me:hush@h/a?code=hush#hush").unwrap();
        let step = Step::new("asked", brief(&"x\n".repeat(500))).at(&url).then("go on");
        assert!(step.to_string().starts_with("asked https://h/a: x x x"));
        assert!(!step.to_string().contains("hush") && step.to_string().len() < 300);
        assert!(step.to_string().ends_with("…\n  → go on"));
    }
}
