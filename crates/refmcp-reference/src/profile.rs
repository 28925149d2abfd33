//! Profiles: the reference contents, the fixtures of the conformance suite, or both.

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

    /// The profile of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == name)
    }

    pub(crate) fn has_reference(self) -> bool {
        self != Self::Conformance
    }

    pub(crate) fn has_fixtures(self) -> bool {
        self != Self::Reference
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for profile in Profile::ALL {
            assert_eq!(Profile::named(profile.as_str()), Some(profile));
        }
        assert_eq!(Profile::named("everything"), None);
    }
}
