//! Faults that the authorization server produces on request, to test how clients and resource servers react.

use std::fmt;
use std::time::Duration;

/// Defines the faults, each with its word on the command line and its description.
macro_rules! faults {
    ($($fault:ident $word:literal $what:literal,)*) => {
        /// One fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fault {
            $(#[doc = $what] $fault,)*
        }

        const TABLE: &[(Fault, &str)] = &[$((Fault::$fault, $word),)*];

        impl Faults {
            /// The word and the description of each fault.
            pub const NAMES: [(&'static str, &'static str); TABLE.len()] = [$(($word, $what),)*];
        }
    };
}

faults! {
    ShortExpiry "short-expiry" "access tokens end after 5 seconds",
    WrongIssuerMetadata "wrong-issuer-metadata" "the metadata name another issuer",
    WrongIssuerToken "wrong-issuer-token" "access tokens name another issuer",
    WrongAudience "wrong-audience" "access tokens are for another resource",
    MissingIss "missing-iss" "authorization responses lack iss although the metadata promise it",
    ForeignIss "foreign-iss" "authorization responses carry the iss of another issuer",
    WrongState "wrong-state" "authorization responses carry another state than the request",
    ExpiredCode "expired-code" "authorization codes are over when they arrive",
    RotatedKeys "rotated-keys" "every token is signed with a new key; the last few are published",
    UnknownKid "unknown-kid" "tokens are signed with a key that is nowhere published",
    NoPkceInMetadata "no-pkce-in-metadata" "the metadata lack code_challenge_methods_supported",
    NoRegistration "no-registration" "there is no dynamic registration",
    NoClientDocuments "no-client-documents" "client ID metadata documents are not taken",
    OidcOnly "oidc-only" "the metadata are in the OpenID document only",
    IssuerPath "issuer-path" "the issuer has the path /tenant; the metadata are where RFC 8414 says",
    IssuerPathOidc "issuer-path-oidc" "as issuer-path, with the OpenID document there only",
    IssuerPathAppended "issuer-path-appended" "as issuer-path, with the OpenID document behind the path only",
    RefusedScopes "refused-scopes" "the last of the scopes that are asked for is not granted",
    RefuseRefresh "refuse-refresh" "refresh tokens are given and never taken",
    NoRefreshToken "no-refresh-token" "no refresh tokens are given",
    OpaqueTokens "opaque-tokens" "access tokens are not JWTs: resource servers have to introspect",
    HtmlTokenResponse "html-token-response" "the token endpoint answers 200 with a page of HTML",
    ServerErrorToken "server-error-token" "the token endpoint answers 500",
    HangingToken "hanging-token" "the token endpoint answers after a minute",
    Slow "slow" "every answer takes 5 seconds, or as many as slow=SECONDS says, up to 60",
}

/// Lifetime of tokens with [`Fault::ShortExpiry`], in seconds.
pub(crate) const SHORT: u64 = 5;

/// How long the token endpoint hangs.
pub(crate) const HANG: Duration = Duration::from_secs(60);

const USUAL_DELAY: Duration = Duration::from_secs(5);
const MAX_DELAY: u64 = 60;

/// The active faults; by default none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    chosen: Vec<Fault>,
    delay: Option<Duration>,
}

/// A word that names no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no fault; there are: {list}", list = Faults::NAMES.map(|(word, _)| word).join(", "))]
pub struct UnknownFault(String);

impl Faults {
    /// Adds a fault by its word.
    ///
    /// # Errors
    /// No fault has this name.
    pub fn and_named(self, word: &str) -> Result<Self, UnknownFault> {
        let unknown = || UnknownFault(word.chars().take(40).collect());
        let (name, seconds) = match word.split_once('=') {
            Some((name @ "slow", seconds)) => (name, Some(seconds)),
            _ => (word, None),
        };
        let (fault, _) = TABLE.iter().find(|(_, known)| *known == name).ok_or_else(unknown)?;
        let mut faults = self.and(*fault);
        if let Some(seconds) = seconds {
            let seconds: u64 = seconds.parse().map_err(|_| unknown())?;
            faults.delay = Some(Duration::from_secs(seconds.min(MAX_DELAY)));
        }
        Ok(faults)
    }

    /// Adds a fault.
    #[must_use]
    pub fn and(mut self, fault: Fault) -> Self {
        if !self.has(fault) {
            self.chosen.push(fault);
        }
        self
    }

    /// True if this fault is active.
    pub fn has(&self, fault: Fault) -> bool {
        self.chosen.contains(&fault)
    }

    /// The delay of every response.
    pub(crate) fn delay(&self) -> Option<Duration> {
        self.has(Fault::Slow).then(|| self.delay.unwrap_or(USUAL_DELAY))
    }
}

impl fmt::Display for Faults {
    /// The words, separated by spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = TABLE.iter().filter(|(fault, _)| self.has(*fault)).map(|(_, word)| *word);
        f.write_str(&words.collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_word_of_its_own_and_an_explanation() {
        let mut faults = Faults::default();
        for (place, (word, explanation)) in Faults::NAMES.into_iter().enumerate() {
            assert!(!explanation.is_empty());
            assert!(Faults::NAMES.iter().skip(place + 1).all(|(other, _)| *other != word), "{word} twice");
            let one = Faults::default().and_named(word).unwrap();
            assert_eq!(one.to_string(), word);
            faults = faults.and_named(word).unwrap();
        }
        assert_eq!(faults.chosen.len(), TABLE.len());
    }

    #[test]
    fn delays_are_at_most_a_minute() {
        let delay = |word| Faults::default().and_named(word).unwrap().delay();
        assert_eq!(delay("slow"), Some(USUAL_DELAY));
        assert_eq!(delay("slow=1"), Some(Duration::from_secs(1)));
        assert_eq!(delay("slow=9999"), Some(Duration::from_secs(60)));
        assert_eq!(delay("missing-iss"), None);
    }

    #[test]
    fn unknown_faults_are_refused() {
        for word in ["", "slow=", "slow=x", "missing-iss=1", "SLOW"] {
            let fault = Faults::default().and_named(word).unwrap_err();
            assert!(fault.to_string().contains("short-expiry"), "{fault}");
        }
    }
}
