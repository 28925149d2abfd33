//! What people see and answer in a terminal.

pub(crate) mod ask;
pub(crate) mod browser;
pub(crate) mod error;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod redact;
pub(crate) mod render;
pub(crate) mod style;
pub(crate) mod suggest;
pub(crate) mod terminal;
pub(crate) mod text;
