//! The names of configured servers. Files are read for them, and nothing is started.

use std::path::Path;

use super::definition::{Position, described};
use super::{Candidate, Candidates};
use crate::command::configured;
use crate::config;
use crate::ui::mask;

/// The servers that the files name, or the one file that the line names.
pub(super) fn servers(position: &Position<'_>, last: &str) -> Candidates {
    // An address is not the beginning of a name.
    if last.contains("://") {
        return Candidates::default();
    }
    let known = match position.value("config") {
        Some(file) => config::read(Path::new(file)),
        None => config::read_all(&configured::usual_files()),
    };
    let usable = known.servers.iter().filter(|entry| !entry.disabled);
    Candidates::words(
        usable.map(|entry| Candidate::new(&entry.name, described(&mask::target(&entry.launch)))),
    )
}
