//! The five revisions of the protocol: the only place that knows their dates.
//!
//! Each revision file is a [`Rules`] table that differs from the one before, so it reads like the changelog of the
//! specification. The rest of the code looks up the table, and never compares revisions. [`downgrade`] turns values of the
//! model, which has the newest shape, into the shape of an older revision, and [`upgrade`] reads them from any; the tables of
//! methods ([`Method`], [`ServerMethod`], [`NotificationMethod`]) know which revision has which method.
//!
//! ```
//! use refmcp_proto::revision::{Lifecycle, Revision};
//!
//! let rules = "2025-06-18".parse::<Revision>().unwrap().rules();
//! assert!(rules.resource_links && !rules.icons);
//! assert_eq!(rules.lifecycle, Lifecycle::Handshake);
//! ```

pub mod downgrade;
mod methods;
mod rules;
mod set;
pub mod upgrade;
mod v2024_11_05;
mod v2025_03_26;
mod v2025_06_18;
mod v2025_11_25;
mod v2026_07_28;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use methods::{Method, NotificationMethod, ServerMethod};
pub use rules::{
    BadArguments, BatchRule, Elicitation, InputMode, Lifecycle, LogScope, Resumption, Rules,
    StructuredOutput, Tasks, UnreadableId, UrlElicitation,
};
pub use set::RevisionSet;

named_enum! {
    /// A dated revision of the specification, oldest first.
    #[non_exhaustive]
    pub enum Revision {
        /// The first one: stdio and HTTP+SSE.
        V2024_11_05 = "2024-11-05",
        /// Streamable HTTP, batches, audio, tool annotations.
        V2025_03_26 = "2025-03-26",
        /// Elicitation, structured output, resource links; batches leave.
        V2025_06_18 = "2025-06-18",
        /// URL elicitation, richer enums, icons, sampling with tools.
        V2025_11_25 = "2025-11-25",
        /// No sessions: every request is stateless.
        V2026_07_28 = "2026-07-28",
    } else UnknownRevision = |_| UnknownRevision
}

impl Revision {
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The newest revision that is opened by a handshake.
    pub const LATEST_SESSION: Self = Self::V2025_11_25;

    /// The rules of this revision.
    pub const fn rules(self) -> &'static Rules {
        match self {
            Self::V2024_11_05 => &v2024_11_05::RULES,
            Self::V2025_03_26 => &v2025_03_26::RULES,
            Self::V2025_06_18 => &v2025_06_18::RULES,
            Self::V2025_11_25 => &v2025_11_25::RULES,
            Self::V2026_07_28 => &v2026_07_28::RULES,
        }
    }

    /// How a connection opens in this revision.
    pub const fn lifecycle(self) -> Lifecycle {
        self.rules().lifecycle
    }

    /// The revisions with this lifecycle, newest first.
    pub fn with(lifecycle: Lifecycle) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().rev().filter(move |revision| revision.lifecycle() == lifecycle)
    }

    /// The revision that a server selects for an `initialize` with this `protocolVersion`: the same when it has sessions,
    /// else the newest that has.
    pub fn negotiate(requested: &str) -> Self {
        match requested.parse::<Self>() {
            Ok(revision) if revision.lifecycle() == Lifecycle::Handshake => revision,
            _ => Self::LATEST_SESSION,
        }
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A version string that names no revision known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a known revision of the protocol")]
pub struct UnknownRevision;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_order() {
        for revision in Revision::ALL {
            assert_eq!(revision.as_str().parse(), Ok(revision));
        }
        assert!(Revision::ALL.is_sorted());
        assert_eq!(Revision::ALL.last(), Some(&Revision::LATEST));
        assert_eq!(Revision::with(Lifecycle::Handshake).next(), Some(Revision::LATEST_SESSION));
    }

    #[test]
    fn a_handshake_never_yields_a_revision_without_one() {
        assert_eq!(Revision::negotiate("2025-06-18"), Revision::V2025_06_18);
        for other in ["2026-07-28", "2099-01-01", "", "latest"] {
            assert_eq!(Revision::negotiate(other), Revision::LATEST_SESSION, "{other}");
        }
    }
}
