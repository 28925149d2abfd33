//! Errors of the authorization flow, with blame and advice.

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
#[non_exhaustive]
pub enum FlowError {
    /// The server's URL is not confidential.
    #[error("{0} is not https: a token sent there could be read by others")]
    Insecure(String),
    /// A request got no response.
    #[error("no response from {url}: {why}")]
    Fetch {
        /// The URL.
        url: String,
        /// The party behind the URL.
        whose: Blame,
        /// The reason.
        why: FetchError,
    },
    /// A metadata URL redirects elsewhere.
    #[error(
        "{from} sends us on to {to}, which is not followed: it is not on the same server, or not the first time"
    )]
    UnfollowedRedirect {
        /// The URL.
        from: String,
        /// The party behind the URL.
        whose: Blame,
        /// The target of the redirect.
        to: String,
    },
    /// Protected resource metadata is missing or broken.
    #[error("{server} has no usable protected resource metadata: {why}")]
    NoResourceMetadata {
        /// The server.
        server: String,
        /// What was found instead.
        why: String,
    },
    /// Protected resource metadata names another resource.
    #[error("the metadata at {url} is about {named:?} and not about {server}")]
    ResourceMismatch {
        /// The URL of the document.
        url: String,
        /// The resource that it names.
        named: String,
        /// The expected resource.
        server: String,
    },
    /// The server names no usable authorization server.
    #[error("{0} names no authorization server that can be used")]
    NoAuthorizationServer(String),
    /// Authorization server metadata is missing or broken.
    #[error("the authorization server {issuer} has no usable metadata: {why}")]
    NoServerMetadata {
        /// The authorization server.
        issuer: String,
        /// What was found instead.
        why: String,
    },
    /// Authorization server metadata names another issuer.
    #[error("the metadata at {url} is of the authorization server {named:?} and not of {issuer:?}")]
    IssuerMismatch {
        /// The URL of the document.
        url: String,
        /// The issuer that it names.
        named: String,
        /// The expected issuer.
        issuer: String,
    },
    /// The authorization server does not announce PKCE with S256.
    #[error("the authorization server {0} does not announce PKCE with S256")]
    PkceUnsupported(String),
    /// An endpoint is missing or its URL is not usable.
    #[error("the {what} of the authorization server {issuer} cannot be used: {why}")]
    InvalidEndpoint {
        /// The endpoint.
        what: &'static str,
        /// The authorization server.
        issuer: String,
        /// The reason.
        why: String,
    },
    /// The pre-registered client belongs to another authorization server.
    #[error(
        "the client {client_id} is registered with {of} and not with {issuer}, which the server trusts now"
    )]
    ClientOfOtherIssuer {
        /// The client.
        client_id: String,
        /// The authorization server that it is registered with.
        of: String,
        /// The authorization server that the MCP server names.
        issuer: String,
    },
    /// The assertion is meant for another authorization server.
    #[error(
        "what vouches for this client is not sent to {issuer}, the authorization server that the server names: {why}"
    )]
    AssertionAudience {
        /// The authorization server that the MCP server names.
        issuer: String,
        /// The reason.
        why: String,
    },
    /// No client identity fits the authorization server.
    #[error("the authorization server {issuer} does not know this client: {why}")]
    NoClientIdentity {
        /// The authorization server.
        issuer: String,
        /// The reason.
        why: String,
    },
    /// The dynamic registration failed.
    #[error("the authorization server {issuer} did not register this client: {why}")]
    RegistrationFailed {
        /// The authorization server.
        issuer: String,
        /// The reason.
        why: String,
        /// True if the redirect URI was rejected.
        redirect: bool,
    },
    /// The client cannot authenticate itself.
    #[error("this client cannot authenticate to {issuer}: {why}")]
    ClientAuthentication {
        /// The authorization server.
        issuer: String,
        /// The reason.
        why: String,
    },
    /// A redirect does not answer this flow's authorization request.
    #[error("the redirect does not answer this login: {0}")]
    InvalidRedirect(&'static str),
    /// A redirect comes from another authorization server.
    #[error("the browser {} {issuer}", came_back(*.silent))]
    RedirectIssuer {
        /// The expected authorization server.
        issuer: String,
        /// True if `iss` is missing although the authorization server announces it.
        silent: bool,
    },
    /// The authorization endpoint returned an error.
    #[error("the authorization server {issuer} denied the authorization: {refusal}")]
    AuthorizationDenied {
        /// The authorization server.
        issuer: String,
        /// The error.
        refusal: OAuthError,
    },
    /// The token endpoint returned an error.
    #[error("{issuer} gave no token: {refusal}")]
    TokenDenied {
        /// The issuer.
        issuer: String,
        /// The error.
        refusal: OAuthError,
    },
    /// The refresh token is no longer accepted; a new login is needed.
    #[error("{issuer} does not renew the login: {refusal}")]
    RefreshDenied {
        /// The authorization server.
        issuer: String,
        /// The error.
        refusal: OAuthError,
    },
    /// There is no refresh token; a new login is needed.
    #[error("there is no refresh token for {0}")]
    NoRefreshToken(String),
    /// The token response is not valid.
    #[error("{issuer} sent an invalid token response: {why}")]
    InvalidTokenResponse {
        /// The issuer.
        issuer: String,
        /// The reason.
        why: String,
    },
    /// A key, a random value or a signature cannot be made.
    #[error("{0}")]
    Crypto(String),
    /// The caller drove the flow out of order.
    #[error("the login was driven out of order")]
    OutOfOrder,
    /// The flow exceeds the limit of requests.
    #[error("the login takes more requests than the limit allows")]
    TooManySteps,
}

impl FlowError {
    /// The party that can fix the error.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Insecure(_) | Self::ClientOfOtherIssuer { .. } | Self::NoClientIdentity { .. } => {
                Blame::Configuration
            }
            Self::ClientAuthentication { .. } | Self::AssertionAudience { .. } => Blame::Configuration,
            Self::Fetch { whose, why: FetchError::TooLarge(_) | FetchError::Broken(_), .. }
            | Self::UnfollowedRedirect { whose, .. } => *whose,
            Self::Fetch { .. } => Blame::Network,
            Self::NoResourceMetadata { .. }
            | Self::ResourceMismatch { .. }
            | Self::NoAuthorizationServer(_) => Blame::Server,
            Self::NoServerMetadata { .. } | Self::IssuerMismatch { .. } | Self::PkceUnsupported(_) => {
                Blame::AuthorizationServer
            }
            Self::InvalidEndpoint { .. }
            | Self::RegistrationFailed { .. }
            | Self::InvalidTokenResponse { .. } => Blame::AuthorizationServer,
            Self::InvalidRedirect(_) | Self::RedirectIssuer { .. } => Blame::Attacker,
            Self::AuthorizationDenied { refusal, .. } if refusal.error == "access_denied" => Blame::User,
            Self::TokenDenied { refusal, .. } if is_about_client(&refusal.error) => Blame::Configuration,
            Self::AuthorizationDenied { .. } | Self::TokenDenied { .. } => Blame::AuthorizationServer,
            Self::RefreshDenied { .. } | Self::NoRefreshToken(_) => Blame::User,
            Self::Crypto(_) | Self::OutOfOrder | Self::TooManySteps => Blame::Internal,
        }
    }

    /// What the user can do.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Insecure(_) => "use the server's https URL",
            Self::Fetch { why: FetchError::Forbidden(_), .. } => {
                "the server names an address inside a network that a remote party must not send this client to; ask the server's operator"
            }
            Self::Fetch { .. } if self.blame() == Blame::Network => "check the network and try again",
            Self::Fetch { .. } | Self::UnfollowedRedirect { .. }
                if self.blame() == Blame::AuthorizationServer =>
            {
                NOT_WORKING
            }
            Self::Fetch { .. }
            | Self::UnfollowedRedirect { .. }
            | Self::NoResourceMetadata { .. }
            | Self::NoAuthorizationServer(_) => {
                "tell the server's operator that its authorization metadata is missing or broken"
            }
            Self::ResourceMismatch { .. } => {
                "check the server's URL; if it is right, do not log in: the server sends you elsewhere"
            }
            Self::NoServerMetadata { .. }
            | Self::InvalidEndpoint { .. }
            | Self::InvalidTokenResponse { .. } => NOT_WORKING,
            Self::IssuerMismatch { .. } => {
                "do not log in: an attacker may pretend to be the authorization server"
            }
            Self::PkceUnsupported(_) => {
                "tell the authorization server's operator to list S256 among its PKCE methods"
            }
            Self::ClientOfOtherIssuer { .. } => {
                "register a client with the authorization server that is trusted now, and give its id"
            }
            Self::AssertionAudience { .. } => {
                "if that is the right authorization server, have something made out to it, or name it as the client's issuer; \
                 if not, do not use this server"
            }
            Self::NoClientIdentity { .. } | Self::RegistrationFailed { redirect: false, .. } => {
                "register a client with the authorization server by hand and give its id (and secret)"
            }
            Self::RegistrationFailed { redirect: true, .. } => {
                "it does not like where people are sent back to: register a client by hand with a redirect URI that it \
                 takes, and give its id and that URI"
            }
            Self::ClientAuthentication { .. } => {
                "give the client's secret or key, of the kind that the authorization server takes"
            }
            Self::InvalidRedirect(_) => "start the login again, and finish it in the window that it opens",
            Self::RedirectIssuer { .. } => {
                "do not go on: this may be a mix-up attack between two authorization servers"
            }
            Self::AuthorizationDenied { .. } | Self::TokenDenied { .. }
                if self.blame() == Blame::Configuration =>
            {
                "check the client's id and secret, and what it is registered for"
            }
            Self::AuthorizationDenied { .. } if self.blame() == Blame::User => {
                "log in again and agree to what is asked"
            }
            Self::AuthorizationDenied { .. } | Self::TokenDenied { .. } => {
                "try again; if the error stays, ask the authorization server's operator"
            }
            Self::RefreshDenied { .. } | Self::NoRefreshToken(_) => "log in again",
            Self::Crypto(_) | Self::OutOfOrder | Self::TooManySteps => "report this as a bug",
        }
    }

    /// True if a new login may help where a refresh did not.
    pub fn needs_login(&self) -> bool {
        matches!(self, Self::RefreshDenied { .. } | Self::NoRefreshToken(_))
    }
}

const NOT_WORKING: &str = "tell the authorization server's operator that it does not work as it should";

fn is_about_client(error: &str) -> bool {
    matches!(error, "invalid_client" | "unauthorized_client" | "invalid_scope" | "invalid_target")
}

fn came_back(silent: bool) -> &'static str {
    if silent {
        "does not say from where it came back, as it would from"
    } else {
        "came back from another authorization server than"
    }
}
