//! What is wrong with arguments, all of it at once.

use std::fmt;

use crate::args::UsageError;
use crate::ui::text::one_line;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// The argument, or the word.
    pub(crate) key: String,
    /// What is wrong with it.
    pub(crate) what: String,
}

impl Mistake {
    pub(super) fn new(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self { key: key.into(), what: what.into() }
    }
}

/// Everything that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistakes(pub(crate) Vec<Mistake>);

impl std::error::Error for Mistakes {}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing was sent, since the arguments do not fit:")?;
        for Mistake { key, what } in &self.0 {
            // Names and descriptions are the server's words.
            write!(f, "\n  {}: {}", one_line(key), one_line(what))?;
        }
        Ok(())
    }
}

impl From<Mistakes> for UsageError {
    fn from(mistakes: Mistakes) -> Self {
        Self::new(mistakes.to_string())
    }
}
