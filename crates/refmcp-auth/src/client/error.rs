//! Why a flow ends without a token.

use crate::fetch::Unfetched;
use crate::metadata::OAuthError;

/// Who has to do something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blame {
    /// Whoever runs the MCP server.
    Server,
    /// Whoever runs the authorization server, or the enterprise's identity provider.
    Issuer,
    /// Whoever started this: something in the settings is missing or wrong.
    Settings,
    /// Whoever was asked in the browser: they did not say yes.
    Person,
    /// Nobody could be reached.
    Network,
    /// Somebody who meddles, or a browser that was sent back to us twice.
    Meddler,
    /// This program or its machine.
    Ourselves,
}

/// Why a flow ends without a token. No secret is in what it says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// The server is not spoken to in private.
    #[error("{0} is not https: a token sent there could be read by others")]
    Insecure(String),
    /// Nothing could be fetched.
    #[error("nothing came from {url}: {why}")]
    Unfetched {
        /// From where.
        url: String,
        /// Who answers there.
        whose: Blame,
        /// Why not.
        why: Unfetched,
    },
    /// A document was sent elsewhere.
    #[error(
        "{from} sends us on to {to}, which is not followed: it is not on the same server, or not the first time"
    )]
    Redirected {
        /// What was asked for.
        from: String,
        /// Who sent us on.
        whose: Blame,
        /// Where it sent us.
        to: String,
    },
    /// The server does not tell which authorization server it trusts.
    #[error("{server} does not tell which authorization server it trusts: {why}")]
    NoResourceMetadata {
        /// The server.
        server: String,
        /// What was found instead.
        why: String,
    },
    /// The server's document is about something else.
    #[error("the metadata at {url} is about {named:?} and not about {server}")]
    OtherResource {
        /// Where the document is.
        url: String,
        /// What it is about.
        named: String,
        /// What it should be about.
        server: String,
    },
    /// The server names no authorization server that can be used.
    #[error("{0} names no authorization server that can be used")]
    NoIssuer(String),
    /// The authorization server does not tell about itself.
    #[error("the authorization server {issuer} does not tell about itself: {why}")]
    NoServerMetadata {
        /// The authorization server.
        issuer: String,
        /// What was found instead.
        why: String,
    },
    /// The authorization server's document is about another one.
    #[error("the metadata at {url} is of the authorization server {named:?} and not of {issuer:?}")]
    OtherIssuer {
        /// Where the document is.
        url: String,
        /// Whose it is.
        named: String,
        /// Whose it should be.
        issuer: String,
    },
    /// The authorization server does not say that it checks PKCE.
    #[error("the authorization server {0} does not say that it supports PKCE with S256")]
    NoPkce(String),
    /// The authorization server lacks an endpoint, or has one that must not be used.
    #[error("the {what} of the authorization server {issuer} cannot be used: {why}")]
    BadEndpoint {
        /// Which endpoint.
        what: &'static str,
        /// The authorization server.
        issuer: String,
        /// What is wrong with it.
        why: String,
    },
    /// Our identity belongs elsewhere.
    #[error(
        "the client {client_id} is registered with {of} and not with {issuer}, which the server trusts now"
    )]
    OtherClient {
        /// Which client.
        client_id: String,
        /// Whose it is.
        of: String,
        /// Who asks for it.
        issuer: String,
    },
    /// What vouches for us is not for this authorization server.
    #[error(
        "what vouches for this client is not sent to {issuer}, the authorization server that the server names: {why}"
    )]
    OtherAudience {
        /// Who would get it.
        issuer: String,
        /// Whom it is for instead.
        why: String,
    },
    /// There is no way to tell who we are.
    #[error("the authorization server {issuer} does not know this client: {why}")]
    NoIdentity {
        /// The authorization server.
        issuer: String,
        /// Why no way was open.
        why: String,
    },
    /// The authorization server did not register us.
    #[error("the authorization server {issuer} did not register this client: {why}")]
    Unregistered {
        /// The authorization server.
        issuer: String,
        /// What it said.
        why: String,
        /// Whether it is where we want people sent back to that it did not like.
        redirect: bool,
    },
    /// We cannot prove who we are.
    #[error("this client cannot prove who it is to {issuer}: {why}")]
    CannotProve {
        /// The authorization server.
        issuer: String,
        /// Why not.
        why: String,
    },
    /// The browser came back with something that does not belong to this login.
    #[error("what the browser came back with is not the answer to this login: {0}")]
    NotOurs(&'static str),
    /// The browser came back from another authorization server.
    #[error("the browser {} {issuer}", came_back(*.silent))]
    WrongIssuer {
        /// Who was asked.
        issuer: String,
        /// Whether nobody is named, where the one who was asked says that it always names itself.
        silent: bool,
    },
    /// The authorization server, or the person there, said no.
    #[error("the authorization server {issuer} did not let us in: {refusal}")]
    Denied {
        /// The authorization server.
        issuer: String,
        /// What it said.
        refusal: OAuthError,
    },
    /// The token endpoint said no.
    #[error("{issuer} gave no token: {refusal}")]
    Refused {
        /// Who.
        issuer: String,
        /// What it said.
        refusal: OAuthError,
    },
    /// What refreshes a grant works no more: a new login is needed.
    #[error("{issuer} does not renew the login: {refusal}")]
    NotRenewed {
        /// The authorization server.
        issuer: String,
        /// What it said.
        refusal: OAuthError,
    },
    /// There is nothing that would bring another token without a login.
    #[error("there is nothing to renew the login at {0} with")]
    NotRenewable(String),
    /// What came from the token endpoint is no token.
    #[error("{issuer} gave something else than a token: {why}")]
    BadTokenResponse {
        /// Who.
        issuer: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing can be made or signed.
    #[error("{0}")]
    NoKeys(String),
    /// Whoever drives the flow did something at the wrong time.
    #[error("the login is not at the point where this could happen")]
    OutOfTurn,
    /// It takes too long a way.
    #[error("the login takes more steps than any needs")]
    TooManySteps,
}

impl FlowError {
    /// Who has to do something about it.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Insecure(_) | Self::OtherClient { .. } | Self::NoIdentity { .. } => Blame::Settings,
            Self::CannotProve { .. } | Self::OtherAudience { .. } => Blame::Settings,
            Self::Unfetched { whose, why: Unfetched::TooLong(_) | Unfetched::Broken(_), .. }
            | Self::Redirected { whose, .. } => *whose,
            Self::Unfetched { .. } => Blame::Network,
            Self::NoResourceMetadata { .. } | Self::OtherResource { .. } | Self::NoIssuer(_) => Blame::Server,
            Self::NoServerMetadata { .. } | Self::OtherIssuer { .. } | Self::NoPkce(_) => Blame::Issuer,
            Self::BadEndpoint { .. } | Self::Unregistered { .. } | Self::BadTokenResponse { .. } => {
                Blame::Issuer
            }
            Self::NotOurs(_) | Self::WrongIssuer { .. } => Blame::Meddler,
            Self::Denied { refusal, .. } if refusal.error == "access_denied" => Blame::Person,
            Self::Refused { refusal, .. } if is_about_client(&refusal.error) => Blame::Settings,
            Self::Denied { .. } | Self::Refused { .. } => Blame::Issuer,
            Self::NotRenewed { .. } | Self::NotRenewable(_) => Blame::Person,
            Self::NoKeys(_) | Self::OutOfTurn | Self::TooManySteps => Blame::Ourselves,
        }
    }

    /// What a person can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Insecure(_) => "use the server's https URL",
            Self::Unfetched { why: Unfetched::Forbidden(_), .. } => {
                "the server names an address inside a network that strangers must not send us to; ask whoever runs it"
            }
            Self::Unfetched { .. } if self.blame() == Blame::Network => "check the network and try again",
            Self::Unfetched { .. } | Self::Redirected { .. } if self.blame() == Blame::Issuer => NOT_WORKING,
            Self::Unfetched { .. }
            | Self::Redirected { .. }
            | Self::NoResourceMetadata { .. }
            | Self::NoIssuer(_) => {
                "tell whoever runs the server that its authorization metadata is missing or broken"
            }
            Self::OtherResource { .. } => {
                "check the server's URL; if it is right, do not log in: the server sends you elsewhere"
            }
            Self::NoServerMetadata { .. } | Self::BadEndpoint { .. } | Self::BadTokenResponse { .. } => {
                NOT_WORKING
            }
            Self::OtherIssuer { .. } => "do not log in: somebody may pretend to be the authorization server",
            Self::NoPkce(_) => {
                "tell whoever runs the authorization server to list S256 among its PKCE methods"
            }
            Self::OtherClient { .. } => {
                "register a client with the authorization server that is trusted now, and give its id"
            }
            Self::OtherAudience { .. } => {
                "if that is the right authorization server, have something made out to it, or name it as the client's issuer; \
                 if not, do not use this server"
            }
            Self::NoIdentity { .. } | Self::Unregistered { redirect: false, .. } => {
                "register a client with the authorization server by hand and give its id (and secret)"
            }
            Self::Unregistered { redirect: true, .. } => {
                "it does not like where people are sent back to: register a client by hand with a redirect URI that it \
                 takes, and give its id and that URI"
            }
            Self::CannotProve { .. } => {
                "give the client's secret or key, of the kind that the authorization server takes"
            }
            Self::NotOurs(_) => "start the login again, and finish it in the window that it opens",
            Self::WrongIssuer { .. } => "do not go on: somebody may have mixed up two authorization servers",
            Self::Denied { .. } | Self::Refused { .. } if self.blame() == Blame::Settings => {
                "check the client's id and secret, and what it is registered for"
            }
            Self::Denied { .. } if self.blame() == Blame::Person => "log in again and agree to what is asked",
            Self::Denied { .. } | Self::Refused { .. } => {
                "try again; if it stays, ask whoever runs the authorization server"
            }
            Self::NotRenewed { .. } | Self::NotRenewable(_) => "log in again",
            Self::NoKeys(_) | Self::OutOfTurn | Self::TooManySteps => "report this as a bug",
        }
    }

    /// Whether a new login may help where renewing the old one did not.
    pub fn needs_login(&self) -> bool {
        matches!(self, Self::NotRenewed { .. } | Self::NotRenewable(_))
    }
}

const NOT_WORKING: &str = "tell whoever runs the authorization server that it does not work as it should";

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
