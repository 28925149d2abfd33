//! OAuth 2.1 as MCP uses it, for clients, resource servers and authorization servers. Sans-IO.
//!
//! Values and a time go in; HTTP requests, decisions and errors come out as values. No function waits, fetches or reads a
//! clock. The caller does that, so every rule is tested without a socket.
//!
//! - [`Secret`], [`Scopes`], [`Challenge`], [`pkce`], [`uri`], [`metadata`]: the vocabulary of OAuth.
//! - [`client`]: the authorization flow of a client. [`resource`]: token validation of a resource server.
//! - [`fetch`]: the trait of an HTTP fetcher. [`basic`]: HTTP Basic client authentication.
//! - [`RefusedClientCredentials`]: what a response says about the client of a token request, for the log.
//! - [`ExpiringMap`]: what both kinds of servers store for a limited time.
//! - [`header_value`]: lists, tokens and quoted strings of HTTP headers.
//! - [`extension`]: the identifiers of MCP's authorization extensions.
//! - [`jose`], [`claims`], [`dpop`]: JWS, JWT claims and proofs of possession, signed and verified.

/// Declares a struct of JSON members, all public: `name?: T` is an `Option<T>` that is left out when it is `None`.
macro_rules! json_struct {
    ($(#[$outer:meta])* pub struct $type:ident { $($members:tt)* }) => {
        json_struct! { @members [$(#[$outer])*] $type [] $($members)* }
    };
    (@members $outer:tt $type:ident [$($done:tt)*] $(#[$attribute:meta])* $name:ident?: $ty:ty, $($rest:tt)*) => {
        json_struct! { @members $outer $type [
            $($done)*
            $(#[$attribute])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $name: Option<$ty>,
        ] $($rest)* }
    };
    (@members $outer:tt $type:ident [$($done:tt)*] $(#[$attribute:meta])* $name:ident: $ty:ty, $($rest:tt)*) => {
        json_struct! { @members $outer $type [$($done)* $(#[$attribute])* pub $name: $ty,] $($rest)* }
    };
    (@members [$($outer:tt)*] $type:ident [$($members:tt)*]) => {
        $($outer)*
        pub struct $type { $($members)* }
    };
}

/// Declares an enumeration of registered names: what it is called, and which one a name means.
macro_rules! named_enum {
    ($(#[$about:meta])* pub enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $type { $($(#[$doc])* #[serde(rename = $name)] $variant,)+ }

        impl $type {
            /// All, in order of preference.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The registered name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The one of this name, if it is supported.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|known| known.name() == name)
            }
        }
    };
}

pub mod basic;
pub mod challenge;
pub mod claims;
pub mod client;
pub mod dpop;
mod expiring_map;
pub mod extension;
pub mod fetch;
pub mod header_value;
pub mod jose;
pub mod metadata;
mod numeric_date;
pub mod pkce;
pub mod random;
pub mod resource;
pub mod scope;
pub mod secret;
pub mod uri;

pub use basic::RefusedClientCredentials;
pub use challenge::Challenge;
pub use expiring_map::ExpiringMap;
pub use scope::Scopes;
pub use secret::Secret;

/// Seconds since the Unix epoch (`NumericDate` of RFC 7519).
pub type Seconds = u64;
