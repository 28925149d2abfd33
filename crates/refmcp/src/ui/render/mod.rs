//! Answers of servers, for people to read.

mod content;
mod info;
mod lists;
mod models;
mod results;
mod whole;

use std::io::{self, IsTerminal};

pub(crate) use info::{ServerSummary, server_info};
pub(crate) use lists::{prompts, resources, templates, tools};
pub(crate) use models::{metadata, models};
pub(crate) use results::{completion, exact_bytes, hints, log_message, prompt, resource, tool_result};
pub(crate) use whole::{whole_model, whole_prompt, whole_resource, whole_template, whole_tool};

use super::media::{Inline, Media};
use super::style::Paint;

/// How things are shown.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// In which colours.
    pub(crate) paint: Paint,
    /// In how many columns; any number when nobody sees them side by side.
    pub(crate) width: Option<usize>,
    /// What becomes of images and sounds.
    pub(crate) media: Media,
}

impl View {
    /// As standard output can show it.
    pub(crate) fn for_stdout(no_color: bool) -> Self {
        let stdout = io::stdout();
        let paint = Paint::for_stdout(&stdout, no_color);
        let seen = stdout.is_terminal();
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let inline = if seen { Inline::detect(env) } else { None };
        Self {
            paint,
            width: if seen {
                env("COLUMNS").and_then(|columns| columns.parse().ok()).or_else(|| columns(&stdout))
            } else {
                None
            },
            media: if seen { Media::new(std::env::temp_dir(), inline) } else { Media::left_out() },
        }
    }

    #[cfg(test)]
    fn plain(folder: &std::path::Path) -> Self {
        Self { paint: Paint::PLAIN, width: None, media: Media::new(folder, None) }
    }
}

/// The columns of a terminal.
#[cfg(unix)]
fn columns(stdout: &io::Stdout) -> Option<usize> {
    rustix::termios::tcgetwinsize(stdout)
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
}

#[cfg(not(unix))]
fn columns(_stdout: &io::Stdout) -> Option<usize> {
    None
}

#[cfg(test)]
mod tests;
