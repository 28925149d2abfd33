//! Profiles: the reference contents, the fixtures of the conformance suite, or both.

use std::fmt;
use std::str::FromStr;

/// Which contents the server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// The reference tools, resources, prompts, models and metadata.
    Reference,
    /// The fixtures of the conformance suite, and nothing beyond the protocol.
    Conformance,
    /// Both.
    #[default]
    All,
}

/// A name that is no profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no profile; there are reference, conformance and all")]
pub struct UnknownProfile(String);

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 3] = [Self::Reference, Self::Conformance, Self::All];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Conformance => "conformance",
            Self::All => "all",
        }
    }

    pub(crate) fn has_reference(self) -> bool {
        self != Self::Conformance
    }

    pub(crate) fn has_fixtures(self) -> bool {
        self != Self::Reference
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.as_str() == name)
            .ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
        assert!("everything".parse::<Profile>().unwrap_err().to_string().contains("conformance"));
    }
}
