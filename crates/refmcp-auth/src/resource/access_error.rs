//! Access errors of a resource server, and their challenges (RFC 6750, RFC 9449).

use http::StatusCode;

use crate::challenge::Challenge;
use crate::claims::TokenError;
use crate::client::TokenType;
use crate::dpop::ProofError;
use crate::jose::Algorithm;
use crate::scope::Scopes;

/// Why a request has no access.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// No credentials.
    #[error("a token is needed here")]
    NoCredentials,
    /// Credentials of a scheme that is not accepted. The challenge is the one without credentials.
    #[error("credentials of this scheme are not accepted; a token is needed here")]
    Scheme,
    /// Malformed credentials.
    #[error("{0}")]
    Malformed(&'static str),
    /// The token is not accepted.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Introspection says that the token is not active.
    #[error("the token is not active")]
    Inactive,
    /// A DPoP-bound token was sent without a proof.
    #[error("the token is bound to a key and needs a proof of possession")]
    ProofRequired,
    /// An unbound token was sent with a proof, or only bound tokens are accepted.
    #[error("the token is not bound to a key")]
    NotBound,
    /// The DPoP proof is not accepted.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The token lacks scopes.
    #[error("the token is not good for this; it takes the scopes {0}")]
    InsufficientScope(Scopes),
    /// The issuer cannot be reached to validate the token.
    #[error("the token cannot be checked now")]
    Undecided,
}

/// What all challenges of a resource contain.
#[derive(Debug, Clone, Copy)]
pub struct ChallengeContext<'a> {
    /// The URL of the protected resource metadata.
    pub metadata: &'a str,
    /// The recommended scopes.
    pub scopes: &'a Scopes,
    /// True if only DPoP-bound tokens are accepted.
    pub only_bound: bool,
}

impl AccessError {
    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::InsufficientScope(_) => StatusCode::FORBIDDEN,
            Self::Undecided => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoCredentials
            | Self::Scheme
            | Self::Token(_)
            | Self::Inactive
            | Self::ProofRequired
            | Self::NotBound
            | Self::Proof(_) => StatusCode::UNAUTHORIZED,
        }
    }

    /// The error code; without credentials of an accepted scheme there is none.
    pub fn error(&self) -> Option<&'static str> {
        match self {
            Self::NoCredentials | Self::Scheme | Self::Undecided => None,
            Self::Malformed(_) => Some("invalid_request"),
            Self::Token(_) | Self::Inactive | Self::ProofRequired | Self::NotBound => Some("invalid_token"),
            Self::Proof(ProofError::Nonce) => Some("use_dpop_nonce"),
            Self::Proof(_) => Some("invalid_dpop_proof"),
            Self::InsufficientScope(_) => Some("insufficient_scope"),
        }
    }

    /// The challenges of the response (`WWW-Authenticate`): one for each scheme that could help, DPoP first. `presented`
    /// is the scheme of the request.
    pub fn challenges(
        &self,
        read_credentials: Option<TokenType>,
        says: &ChallengeContext<'_>,
    ) -> Vec<Challenge> {
        let proof = matches!(self, Self::ProofRequired | Self::Proof(_));
        let dpop = says.only_bound || proof || read_credentials == Some(TokenType::Dpop);
        let bearer =
            !says.only_bound && !matches!(self, Self::Proof(_)) && read_credentials != Some(TokenType::Dpop);
        let mut all = Vec::new();
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            return all;
        }
        if dpop {
            let algorithms = Algorithm::ALL.map(Algorithm::name).join(" ");
            all.push(self.challenge(TokenType::Dpop, says).with("algs", algorithms));
        }
        if bearer {
            all.push(self.challenge(TokenType::Bearer, says));
        }
        all
    }

    fn challenge(&self, scheme: TokenType, says: &ChallengeContext<'_>) -> Challenge {
        let mut challenge = Challenge::new(scheme.name());
        if let Some(error) = self.error() {
            challenge = challenge.with("error", error).with("error_description", self.to_string());
        }
        let scopes = match self {
            Self::InsufficientScope(needed) => needed,
            _ => says.scopes,
        };
        if !scopes.is_empty() {
            challenge = challenge.with("scope", scopes.to_string());
        }
        challenge.with("resource_metadata", says.metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(denied: &AccessError, read_credentials: Option<TokenType>, only_bound: bool) -> Vec<String> {
        let scopes = Scopes::parse("a b").unwrap();
        let says = ChallengeContext { metadata: "https://rs/meta", scopes: &scopes, only_bound };
        denied.challenges(read_credentials, &says).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_challenge_without_credentials_has_no_error() {
        assert_eq!(AccessError::NoCredentials.status(), 401);
        let wanted = r#"Bearer scope="a b", resource_metadata="https://rs/meta""#;
        assert_eq!(texts(&AccessError::NoCredentials, None, false), [wanted]);
    }

    #[test]
    fn an_invalid_token_challenge_has_a_description() {
        let denied = AccessError::from(TokenError::Expired);
        let text = &texts(&denied, Some(TokenType::Bearer), false)[0];
        assert!(
            text.starts_with(r#"Bearer error="invalid_token", error_description="the token has expired""#)
        );
        assert!(texts(&denied, Some(TokenType::Dpop), false)[0].starts_with("DPoP error=\"invalid_token\""));
    }

    #[test]
    fn insufficient_scope_names_all_scopes() {
        let denied = AccessError::InsufficientScope(Scopes::parse("c d").unwrap());
        assert_eq!((denied.status().as_u16(), denied.error()), (403, Some("insufficient_scope")));
        assert!(texts(&denied, Some(TokenType::Bearer), false)[0].contains(r#"scope="c d""#));
    }

    #[test]
    fn challenges_offer_the_fitting_schemes() {
        let schemes = |denied: &AccessError, read_credentials, only_bound| {
            let texts = texts(denied, read_credentials, only_bound);
            texts.iter().filter_map(|text| text.split(' ').next().map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(schemes(&AccessError::NoCredentials, None, true), ["DPoP"]);
        assert_eq!(schemes(&AccessError::ProofRequired, Some(TokenType::Bearer), false), ["DPoP", "Bearer"]);
        assert_eq!(schemes(&ProofError::Nonce.into(), Some(TokenType::Dpop), false), ["DPoP"]);
        assert_eq!(schemes(&ProofError::Missing.into(), None, false), ["DPoP"]);
        assert_eq!(schemes(&AccessError::Undecided, Some(TokenType::Bearer), false), [""; 0]);
    }
}
