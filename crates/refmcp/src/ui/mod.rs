//! What people see and answer in a terminal.

pub(crate) mod approve;
pub(crate) mod consent;
pub(crate) mod error;
pub(crate) mod form;
mod line;
pub(crate) mod media;
pub(crate) mod opener;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod questions;
mod raw;
pub(crate) mod redact;
pub(crate) mod render;
pub(crate) mod style;
pub(crate) mod suggest;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod wrap;

#[cfg(test)]
pub(crate) mod scripted;
