//! Errors of the authorization flow, with blame and advice.

use std::fmt;

use url::Url;

use super::flow_step::redacted_url;
use crate::fetch::FetchError;
use crate::metadata::OAuthError;

/// The party that can fix an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blame {
    /// The operator of the MCP server.
    Server,
    /// The operator of the authorization server or of the enterprise's identity provider.
    AuthorizationServer,
    /// The user of this client: a setting is missing or wrong.
    Configuration,
    /// The user in the browser, who did not consent.
    User,
    /// The network.
    Network,
    /// A third party that interferes, or a repeated redirect.
    Attacker,
    /// This program or its machine.
    Internal,
}

/// Why a flow ends without a token. The message contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FlowError {
    kind: FlowErrorKind,
    blame: Blame,
    advice: &'static str,
    message: String,
}

/// What went wrong in a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowErrorKind {
    /// The server's URL is not confidential.
    Insecure,
    /// A request got no response.
    Fetch,
    /// A metadata URL redirects elsewhere.
    UnfollowedRedirect,
    /// Protected resource metadata is missing or broken.
    NoResourceMetadata,
    /// Protected resource metadata names another resource.
    ResourceMismatch,
    /// The server names no usable authorization server.
    NoAuthorizationServer,
    /// Authorization server metadata is missing or broken.
    NoServerMetadata,
    /// Authorization server metadata names another issuer.
    IssuerMismatch,
    /// The authorization server does not announce PKCE with S256.
    PkceUnsupported,
    /// An endpoint is missing or its URL is not usable.
    InvalidEndpoint,
    /// The pre-registered client belongs to another authorization server.
    ClientOfOtherIssuer,
    /// The assertion is meant for another authorization server.
    AssertionAudience,
    /// No client identity fits the authorization server.
    NoClientIdentity,
    /// The dynamic registration failed.
    RegistrationFailed,
    /// The dynamic registration failed because of the redirect URI.
    RedirectUriRefused,
    /// The client cannot authenticate itself.
    ClientAuthentication,
    /// A redirect does not answer this flow's authorization request.
    InvalidRedirect,
    /// A redirect comes from another authorization server, or does not tell from which although it should.
    RedirectIssuer,
    /// The authorization endpoint returned an error.
    AuthorizationDenied,
    /// The token endpoint returned an error.
    TokenDenied,
    /// The refresh token is no longer accepted; a new login is needed.
    RefreshDenied,
    /// There is no refresh token; a new login is needed.
    NoRefreshToken,
    /// The token response is not valid.
    InvalidTokenResponse,
    /// A key, a random value or a signature cannot be made.
    Crypto,
    /// The caller drove the flow out of order.
    OutOfOrder,
    /// The flow exceeds the limit of requests.
    TooManySteps,
}

const NOT_WORKING: &str = "tell the authorization server's operator that it does not work as it should";
const NO_METADATA: &str = "tell the server's operator that its authorization metadata is missing or broken";
const BY_HAND: &str = "register a client with the authorization server by hand and give its id (and secret)";
const TRY_AGAIN: &str = "try again; if the error stays, ask the authorization server's operator";
const CHECK_CLIENT: &str = "check the client's id and secret, and what it is registered for";
const FORBIDDEN: &str = "the server names an address inside a network that a remote party must not send this client to; \
                         ask the server's operator";

impl FlowErrorKind {
    /// The party that can fix the error, and what the user can do.
    const fn blame_and_advice(self) -> (Blame, &'static str) {
        match self {
            Self::Insecure => (Blame::Configuration, "use the server's https URL"),
            Self::Fetch => (Blame::Network, "check the network and try again"),
            Self::UnfollowedRedirect | Self::NoResourceMetadata | Self::NoAuthorizationServer => {
                (Blame::Server, NO_METADATA)
            }
            Self::ResourceMismatch => (
                Blame::Server,
                "check the server's URL; if it is right, do not log in: the server sends you elsewhere",
            ),
            Self::NoServerMetadata | Self::InvalidEndpoint | Self::InvalidTokenResponse => {
                (Blame::AuthorizationServer, NOT_WORKING)
            }
            Self::IssuerMismatch => (
                Blame::AuthorizationServer,
                "do not log in: an attacker may pretend to be the authorization server",
            ),
            Self::PkceUnsupported => (
                Blame::AuthorizationServer,
                "tell the authorization server's operator to list S256 among its PKCE methods",
            ),
            Self::ClientOfOtherIssuer => (
                Blame::Configuration,
                "register a client with the authorization server that is trusted now, and give its id",
            ),
            Self::AssertionAudience => (
                Blame::Configuration,
                "if that is the right authorization server, have something made out to it, or name it as the client's \
                 issuer; if not, do not use this server",
            ),
            Self::NoClientIdentity => (Blame::Configuration, BY_HAND),
            Self::RegistrationFailed => (Blame::AuthorizationServer, BY_HAND),
            Self::RedirectUriRefused => (
                Blame::AuthorizationServer,
                "it does not like where people are sent back to: register a client by hand with a redirect URI that it \
                 takes, and give its id and that URI",
            ),
            Self::ClientAuthentication => (
                Blame::Configuration,
                "give the client's secret or key, of the kind that the authorization server takes",
            ),
            Self::InvalidRedirect => {
                (Blame::Attacker, "start the login again, and finish it in the window that it opens")
            }
            Self::RedirectIssuer => (
                Blame::Attacker,
                "do not go on: this may be a mix-up attack between two authorization servers",
            ),
            Self::AuthorizationDenied | Self::TokenDenied => (Blame::AuthorizationServer, TRY_AGAIN),
            Self::RefreshDenied | Self::NoRefreshToken => (Blame::User, "log in again"),
            Self::Crypto | Self::OutOfOrder | Self::TooManySteps => (Blame::Internal, "report this as a bug"),
        }
    }
}

impl FlowError {
    pub(crate) fn new(kind: FlowErrorKind, message: impl Into<String>) -> Self {
        let (blame, advice) = kind.blame_and_advice();
        Self { kind, blame, advice, message: message.into() }
    }

    /// A request got no response, from a party.
    pub(crate) fn fetch(url: &Url, whose: Blame, why: &FetchError) -> Self {
        let error = Self::new(FlowErrorKind::Fetch, format!("no response from {}: {why}", redacted_url(url)));
        match why {
            FetchError::TooLarge(_) | FetchError::Broken(_) => error.of(whose),
            FetchError::Forbidden(_) => Self { advice: FORBIDDEN, ..error },
            _ => error,
        }
    }

    /// The publisher of a document is to blame.
    pub(crate) fn of(self, whose: Blame) -> Self {
        let advice = if whose == Blame::AuthorizationServer { NOT_WORKING } else { NO_METADATA };
        Self { blame: whose, advice, ..self }
    }

    /// The authorization endpoint returned an error.
    pub(crate) fn authorization_denied(issuer: &str, refusal: &OAuthError) -> Self {
        let message = format!("the authorization server {issuer} denied the authorization: {refusal}");
        let error = Self::new(FlowErrorKind::AuthorizationDenied, message);
        match refusal.error.as_str() {
            "access_denied" => {
                Self { blame: Blame::User, advice: "log in again and agree to what is asked", ..error }
            }
            _ => error,
        }
    }

    /// The token endpoint returned an error.
    pub(crate) fn token_denied(issuer: &str, refusal: &OAuthError) -> Self {
        let error = Self::new(FlowErrorKind::TokenDenied, format!("{issuer} gave no token: {refusal}"));
        match refusal.error.as_str() {
            "invalid_client" | "unauthorized_client" | "invalid_scope" | "invalid_target" => {
                Self { blame: Blame::Configuration, advice: CHECK_CLIENT, ..error }
            }
            _ => error,
        }
    }

    /// The client cannot authenticate itself.
    pub(crate) fn client_authentication(issuer: &str, why: impl fmt::Display) -> Self {
        let message = format!("this client cannot authenticate to {issuer}: {why}");
        Self::new(FlowErrorKind::ClientAuthentication, message)
    }

    /// A redirect does not answer this flow's authorization request.
    pub(crate) fn invalid_redirect(why: &str) -> Self {
        Self::new(FlowErrorKind::InvalidRedirect, format!("the redirect does not answer this login: {why}"))
    }

    /// A key, a random value or a signature cannot be made.
    pub(crate) fn crypto(error: impl fmt::Display) -> Self {
        Self::new(FlowErrorKind::Crypto, error.to_string())
    }

    /// The caller drove the flow out of order.
    pub(crate) fn out_of_order() -> Self {
        Self::new(FlowErrorKind::OutOfOrder, "the login was driven out of order")
    }

    /// What went wrong.
    pub fn kind(&self) -> FlowErrorKind {
        self.kind
    }

    /// The party that can fix the error.
    pub fn blame(&self) -> Blame {
        self.blame
    }

    /// What the user can do.
    pub fn advice(&self) -> &'static str {
        self.advice
    }

    /// True if a new login may help where a refresh did not.
    pub fn needs_login(&self) -> bool {
        matches!(self.kind, FlowErrorKind::RefreshDenied | FlowErrorKind::NoRefreshToken)
    }
}
