//! Why somebody is not let in, and the challenge that says so.

use http::StatusCode;

use super::credentials::Scheme;
use crate::challenge::Challenge;
use crate::claims::TokenFault;
use crate::dpop::ProofFault;
use crate::jose::Algorithm;
use crate::scope::Scopes;

/// Why somebody is not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denied {
    /// Nothing was presented, or nothing that is understood.
    #[error("a token is needed here")]
    Nothing,
    /// Something was presented in a way that nothing may be.
    #[error("{0}")]
    Malformed(&'static str),
    /// The token is no good.
    #[error(transparent)]
    Token(#[from] TokenFault),
    /// Its issuer says that it is no good, or no longer.
    #[error("the token is not active")]
    Inactive,
    /// It is bound to a key, and was presented as if it were not.
    #[error("the token is bound to a key and needs a proof of possession")]
    Unproven,
    /// It is bound to no key, and was presented as if it were; or only bound ones are taken.
    #[error("the token is not bound to a key")]
    Unbound,
    /// The proof that goes with it is no good.
    #[error(transparent)]
    Proof(#[from] ProofFault),
    /// It is good, but not for this.
    #[error("the token is not good for this; it takes the scopes {0}")]
    Scopes(Scopes),
    /// Nobody can tell now: the issuer does not answer.
    #[error("the token cannot be checked now")]
    Unknowable,
}

/// What goes into every challenge of a resource.
#[derive(Debug, Clone, Copy)]
pub struct Says<'a> {
    /// Where it tells about itself.
    pub metadata: &'a str,
    /// The scopes that a client had best ask for.
    pub scopes: &'a Scopes,
    /// Whether only tokens that are bound to a key are taken.
    pub only_bound: bool,
}

impl Denied {
    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Scopes(_) => StatusCode::FORBIDDEN,
            Self::Unknowable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Nothing
            | Self::Token(_)
            | Self::Inactive
            | Self::Unproven
            | Self::Unbound
            | Self::Proof(_) => StatusCode::UNAUTHORIZED,
        }
    }

    /// The word for it; none where nothing was presented.
    pub fn error(&self) -> Option<&'static str> {
        match self {
            Self::Nothing | Self::Unknowable => None,
            Self::Malformed(_) => Some("invalid_request"),
            Self::Token(_) | Self::Inactive | Self::Unproven | Self::Unbound => Some("invalid_token"),
            Self::Proof(ProofFault::Nonce) => Some("use_dpop_nonce"),
            Self::Proof(_) => Some("invalid_dpop_proof"),
            Self::Scopes(_) => Some("insufficient_scope"),
        }
    }

    /// The challenges of the response, to somebody who presented something in this way: one for each scheme that could
    /// help. Where both could, the one with proofs comes first.
    pub fn challenges(&self, presented: Option<Scheme>, says: &Says<'_>) -> Vec<Challenge> {
        let proof = matches!(self, Self::Unproven | Self::Proof(_));
        let dpop = says.only_bound || proof || presented == Some(Scheme::Dpop);
        let bearer = !says.only_bound && !matches!(self, Self::Proof(_)) && presented != Some(Scheme::Dpop);
        let mut all = Vec::new();
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            return all;
        }
        if dpop {
            let algorithms = Algorithm::ALL.map(Algorithm::name).join(" ");
            all.push(self.challenge(Scheme::Dpop, says).with("algs", algorithms));
        }
        if bearer {
            all.push(self.challenge(Scheme::Bearer, says));
        }
        all
    }

    fn challenge(&self, scheme: Scheme, says: &Says<'_>) -> Challenge {
        let mut challenge = Challenge::new(scheme.name());
        if let Some(error) = self.error() {
            challenge = challenge.with("error", error).with("error_description", self.to_string());
        }
        let scopes = match self {
            Self::Scopes(needed) => needed,
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

    fn texts(denied: &Denied, presented: Option<Scheme>, only_bound: bool) -> Vec<String> {
        let scopes = Scopes::parse("a b").unwrap();
        let says = Says { metadata: "https://rs/meta", scopes: &scopes, only_bound };
        denied.challenges(presented, &says).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nothing_presented_is_no_error() {
        assert_eq!(Denied::Nothing.status(), 401);
        let wanted = r#"Bearer scope="a b", resource_metadata="https://rs/meta""#;
        assert_eq!(texts(&Denied::Nothing, None, false), [wanted]);
    }

    #[test]
    fn a_bad_token_is_told_what_is_wrong_with_it() {
        let denied = Denied::from(TokenFault::Expired);
        let text = &texts(&denied, Some(Scheme::Bearer), false)[0];
        assert!(
            text.starts_with(r#"Bearer error="invalid_token", error_description="the token has expired""#)
        );
        assert!(texts(&denied, Some(Scheme::Dpop), false)[0].starts_with("DPoP error=\"invalid_token\""));
    }

    #[test]
    fn missing_scopes_are_named_together() {
        let denied = Denied::Scopes(Scopes::parse("c d").unwrap());
        assert_eq!((denied.status().as_u16(), denied.error()), (403, Some("insufficient_scope")));
        assert!(texts(&denied, Some(Scheme::Bearer), false)[0].contains(r#"scope="c d""#));
    }

    #[test]
    fn schemes_are_offered_where_they_help() {
        let schemes = |denied: &Denied, presented, only_bound| {
            let texts = texts(denied, presented, only_bound);
            texts.iter().filter_map(|text| text.split(' ').next().map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(schemes(&Denied::Nothing, None, true), ["DPoP"]);
        assert_eq!(schemes(&Denied::Unproven, Some(Scheme::Bearer), false), ["DPoP", "Bearer"]);
        assert_eq!(schemes(&ProofFault::Nonce.into(), Some(Scheme::Dpop), false), ["DPoP"]);
        assert_eq!(schemes(&ProofFault::Missing.into(), None, false), ["DPoP"]);
        assert_eq!(schemes(&Denied::Unknowable, Some(Scheme::Bearer), false), [""; 0]);
    }
}
