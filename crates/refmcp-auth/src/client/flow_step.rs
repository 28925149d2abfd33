//! The log of a flow for people (`--explain`).

use std::fmt;

use serde::Serialize;
use url::Url;

/// One step of a flow. It contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowStep {
    /// What was done.
    pub action: String,
    /// The URL, without query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The outcome.
    pub outcome: String,
    /// What follows from the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl FlowStep {
    /// A step without a URL.
    pub fn new(action: impl Into<String>, outcome: impl Into<String>) -> Self {
        Self { action: action.into(), url: None, outcome: outcome.into(), next: None }
    }

    /// Adds the URL. Its query is left out, since it may contain secrets.
    #[must_use]
    pub fn at(self, url: &Url) -> Self {
        Self { url: Some(redacted_url(url)), ..self }
    }

    /// Adds what follows.
    #[must_use]
    pub fn next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }
}

/// A URL for display: without query, fragment and credentials, shortened.
pub(crate) fn redacted_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // A URL that cannot hold credentials has none.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    excerpt(url.as_str())
}

/// Untrusted text for display: one line, shortened.
pub(crate) fn excerpt(text: &str) -> String {
    const MAX_CHARACTERS: usize = 200;
    let line: String =
        text.chars().take(MAX_CHARACTERS).map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
    if text.chars().nth(MAX_CHARACTERS).is_some() { line + "…" } else { line }
}

impl fmt::Display for FlowStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.action)?;
        if let Some(url) = &self.url {
            write!(f, " {url}")?;
        }
        write!(f, ": {}", self.outcome)?;
        match &self.next {
            Some(next) => write!(f, "\n  → {next}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_steps_contain_no_queries() {
        let url = Url::parse("https://me:hush@h/a?code=hush#hush").unwrap();
        let step = FlowStep::new("asked", excerpt(&"x\n".repeat(500))).at(&url).next("go on");
        assert!(step.to_string().starts_with("asked https://h/a: x x x"));
        assert!(!step.to_string().contains("hush") && step.to_string().len() < 300);
        assert!(step.to_string().ends_with("…\n  → go on"));
    }
}
