//! Answers of servers, for people to read.

mod apps;
mod content;
mod details;
mod lists;
pub(crate) mod media;
mod models;
mod results;
mod server_info;
pub(crate) mod table;
mod tasks;

use std::borrow::Cow;
use std::io::{self, IsTerminal};

pub(crate) use apps::{app_details, apps};
pub(crate) use details::{
    model_details, prompt_details, resource_details, skill_details, template_details, tool_details,
};
pub(crate) use lists::{bytes, prompts, resources, skills, templates, tool_title, tools};
pub(crate) use models::{metadata, models};
pub(crate) use results::{completion, exact_bytes, hints, log_message, prompt, resource, tool_result};
pub(crate) use server_info::server_info;
pub(crate) use tasks::{task, task_line, task_support, tasks};

use self::media::{Inline, Media};
use super::style::Paint;
use super::terminal::columns;
use super::text::multi_line;

/// How things are shown.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// In which colours.
    pub(crate) paint: Paint,
    /// In how many columns; any number where no terminal shows them.
    pub(crate) width: Option<usize>,
    /// What becomes of images and sounds.
    pub(crate) media: Media,
    /// Whether a program reads it: then only the text of results is for standard output.
    pub(crate) is_piped: bool,
}

/// A result as it is shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// For standard output.
    pub(crate) text: String,
    /// What is said about it, for stderr.
    pub(crate) notes: String,
}

impl Rendered {
    /// A list. That it is empty is said beside it where a program reads it, which would take the remark for an item.
    pub(crate) fn of_list(text: String, is_empty: bool, view: &View) -> Self {
        if is_empty && view.is_piped {
            return Self { text: String::new(), notes: text };
        }
        text.into()
    }

    /// Says something about what follows: among the text, or beside it where a program reads that.
    fn note(&mut self, note: &str, view: &View) {
        let to = if view.is_piped { &mut self.notes } else { &mut self.text };
        to.push_str(note);
        to.push('\n');
    }
}

impl From<String> for Rendered {
    fn from(text: String) -> Self {
        Self { text, notes: String::new() }
    }
}

impl View {
    /// As standard output can show it.
    pub(crate) fn for_stdout(no_color: bool) -> Self {
        let stdout = io::stdout();
        let paint = Paint::for_stream(&stdout, no_color);
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
            is_piped: !seen,
        }
    }

    /// A text of a server: harmless on a terminal, and as it is for a program, which may write it to a file.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_piped { text.into() } else { multi_line(text) }
    }
}

#[cfg(test)]
mod tests;
