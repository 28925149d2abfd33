//! How commands that talk to no server write what they have to say.

use clap::ValueEnum;

/// The format of a command's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// One JSON document on each line.
    Jsonl,
}

impl Format {
    /// Whether errors are JSON as well.
    pub(crate) fn is_json(self) -> bool {
        self != Self::Text
    }
}
