//! The catalogue of rules: what the specification demands of clients and servers, as rows of tables.
//!
//! A [`Finding`](crate::finding::Finding) names one of them. [`Rules`](crate::revision::Rules) is something else: what holds in
//! one revision. A row has its id, the level, the party that is bound, the revisions that have the rule as letters (`A` is the
//! oldest one, `E` the fifth), the page of the specification or of the extension, and the rule in one sentence of ours.
//!
//! ```
//! use refmcp_proto::revision::Revision;
//! use refmcp_proto::rule::{self, Level, Party};
//!
//! let rule = &rule::RPC_07;
//! assert_eq!((rule.id, rule.level, rule.party), ("RPC-07", Level::Must, Party::Both));
//! assert_eq!(rule.text, "A notification has no id and gets no response.");
//! assert!(rule.revisions.contains(Revision::LATEST));
//! assert_eq!(rule::find("RPC-07"), Some(rule));
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::revision::{Revision, RevisionSet};

/// A rule of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The stable id, such as `RPC-07`.
    pub id: &'static str,
    /// How strict it is.
    pub level: Level,
    /// The party that it binds.
    pub party: Party,
    /// The revisions that have it.
    pub revisions: RevisionSet,
    /// The rule in one sentence.
    pub text: &'static str,
    /// The page of the specification, or of an extension's repository, with its anchor where it has one.
    page: &'static str,
}

/// How strict a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// MUST or MUST NOT.
    Must,
    /// SHOULD or SHOULD NOT.
    Should,
    /// MAY.
    May,
    /// Described without such a word, or read between the lines.
    Note,
}

/// The party that a rule binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Party {
    /// Clients.
    Client,
    /// Servers.
    Server,
    /// Clients and servers.
    Both,
    /// The sender of a request.
    Requestor,
    /// The receiver of a request.
    Receiver,
    /// Whatever stands between client and server.
    Proxy,
    /// Authorization servers.
    AuthorizationServer,
    /// The application around a client: its user interface, model and storage.
    Host,
    /// An app that a host shows.
    View,
    /// What stands between a host on the web and the app that it shows.
    Sandbox,
}

/// The rules about one subject.
#[derive(Debug)]
#[non_exhaustive]
pub struct Area {
    /// The subject.
    pub title: &'static str,
    /// Its rules.
    pub rules: &'static [&'static Rule],
}

/// Writes the statics of an area from the rows of its table.
macro_rules! rules {
    (
        $area:ident $title:literal
        $($name:ident $id:literal $level:ident $party:ident $revisions:ident $page:literal $text:literal;)*
    ) => {
        $(
            #[doc = $text]
            pub static $name: $crate::rule::Rule = $crate::rule::Rule {
                id: $id,
                level: $crate::rule::Level::$level,
                party: $crate::rule::Party::$party,
                revisions: $crate::revision::RevisionSet::from_letters(stringify!($revisions)),
                text: $text,
                page: $page,
            };
        )*

        pub(super) static $area: $crate::rule::Area = $crate::rule::Area { title: $title, rules: &[$(&$name),*] };
    };
}

mod apps;
mod authorization;
mod client_features;
mod lifecycle;
mod messages;
mod patterns;
mod server_features;
mod skills;
mod task_details;
mod tasks;
mod transports;
mod traps;

pub use apps::*;
pub use authorization::*;
pub use client_features::*;
pub use lifecycle::*;
pub use messages::*;
pub use patterns::*;
pub use server_features::*;
pub use skills::*;
pub use task_details::*;
pub use tasks::*;
pub use transports::*;
pub use traps::*;

/// Every rule, by subject.
pub static CATALOG: [&Area; 12] = [
    &messages::MESSAGES,
    &lifecycle::LIFECYCLE,
    &transports::TRANSPORTS,
    &server_features::SERVER_FEATURES,
    &client_features::CLIENT_FEATURES,
    &patterns::PATTERNS,
    &tasks::TASKS,
    &task_details::TASK_DETAILS,
    &skills::SKILLS,
    &apps::APPS,
    &authorization::AUTHORIZATION,
    &traps::TRAPS,
];

/// The rule with this id.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}

/// Every rule, in the order of the catalogue.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    CATALOG.iter().flat_map(|area| area.rules).copied()
}

impl Rule {
    /// Where the specification has it, in the newest revision that does.
    pub fn link(&self) -> String {
        let revision = self.revisions.newest().unwrap_or(Revision::LATEST);
        match self.page.split_once('/') {
            Some((repository, path)) if repository.starts_with("ext-") => {
                format!("https://github.com/modelcontextprotocol/{repository}/blob/main/{path}")
            }
            Some(("extensions", _)) => format!("https://modelcontextprotocol.io/{}", self.page),
            Some(("tutorials", _)) => {
                format!("https://modelcontextprotocol.io/docs/{revision}/{}", self.page)
            }
            _ => format!("https://modelcontextprotocol.io/specification/{revision}/{}", self.page),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
            Self::Note => "note",
        })
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Both => "both",
            Self::Requestor => "requestor",
            Self::Receiver => "receiver",
            Self::Proxy => "proxy",
            Self::AuthorizationServer => "authorization server",
            Self::Host => "host",
            Self::View => "view",
            Self::Sandbox => "sandbox",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_rules_are_found_by_them() {
        let ids: HashSet<&str> = all().map(|rule| rule.id).collect();
        assert_eq!((ids.len(), all().count()), (541, 541));
        for rule in all() {
            assert_eq!(find(rule.id), Some(rule));
        }
        assert_eq!(find("RPC-7"), None);
    }

    #[test]
    fn rules_of_a_family_are_numbered_without_gaps() {
        let mut last = ("", 0);
        for rule in all() {
            let (family, number) = rule.id.split_once('-').unwrap();
            let number: u32 = number.parse().unwrap();
            let expected = if family == last.0 { last.1 + 1 } else { 1 };
            assert_eq!(number, expected, "{rule}");
            last = (family, number);
        }
    }

    #[test]
    fn texts_are_one_short_sentence() {
        for rule in all() {
            assert!(rule.text.ends_with('.') && rule.text.len() <= 120, "{rule}: {}", rule.text);
            assert!(!rule.text.trim_end_matches('.').contains(". "), "{rule}: {}", rule.text);
        }
        let texts: HashSet<&str> = all().map(|rule| rule.text).collect();
        // Some hold alike for two transports or two lifecycles.
        assert!(texts.len() > 520, "{}", texts.len());
    }

    #[test]
    fn links_are_of_the_newest_revision_of_the_rule() {
        for rule in all() {
            let link = rule.link();
            let newest = rule.revisions.newest().unwrap().as_str();
            let of_revision = link.starts_with("https://modelcontextprotocol.io/specification/")
                || link.starts_with("https://modelcontextprotocol.io/docs/");
            let of_extension = link.starts_with("https://modelcontextprotocol.io/extensions/")
                || link.starts_with("https://github.com/modelcontextprotocol/ext-");
            assert!(of_revision || of_extension, "{rule}: {link}");
            assert!(link.contains(&format!("/{newest}/")) || of_extension, "{rule}: {link}");
            let others = Revision::ALL.map(Revision::as_str).into_iter().filter(|date| *date != newest);
            assert!(others.into_iter().all(|date| !link.contains(date)), "{rule}: {link}");
        }
    }
}
