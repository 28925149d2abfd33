//! What a user has approved of a skill.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SkillEntry;

/// The approval of a skill with exactly these files. One that changes, comes or goes revokes it, in a skill further down as well.
/// Whose skill it is, its holder has to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    uri: String,
    /// The digests, by the URIs of the files.
    files: BTreeMap<String, String>,
}

impl Approval {
    /// Approves a skill; none if it is dynamic, since its files change by themselves.
    pub fn of(entry: &SkillEntry) -> Option<Self> {
        let files = entry.files().map(|(uri, _, digest)| (uri.to_owned(), digest.to_string())).collect();
        (!entry.is_dynamic()).then(|| Self { uri: entry.uri().to_owned(), files })
    }

    /// The URI of the skill.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Whether it holds for a skill as it is now.
    pub fn covers(&self, entry: &SkillEntry) -> bool {
        Self::of(entry).as_ref() == Some(self)
    }
}
