//! The Model Context Protocol as values and functions: no IO, no clock, no randomness, no async.
//!
//! | module | what it is |
//! |---|---|
//! | [`jsonrpc`] | JSON-RPC messages from and to bytes, read strictly |
//! | [`frame`] | framing of messages: lines, server-sent events |
//! | [`model`] | what travels inside messages, in the newest shape |
//! | [`revision`] | the five revisions: what differs, and how shapes are adapted |
//! | [`engine`] | the engines of server and client: messages and a time in; messages, work and deadlines out |
//! | [`app`] | what is true of an app: its URI, its page, its origins, its policy |
//! | [`http`] | streamable HTTP as decisions: what a POST is, which status its response has |
//! | [`param_headers`] | tool parameters mirrored in `Mcp-Param-*` headers |
//! | [`uri_template`] | URI templates, expanded and matched |
//! | `schema` | validators of JSON Schemas; with the feature of that name |
//! | `front_matter`, `skill` | YAML front matter, and skills with their digests; with the feature `skills` |
//! | [`peer`] | the client as a server knows it: revision, capabilities, name |
//! | [`rule`] | the catalogue of the specification's rules |
//! | [`finding`] | rules that a peer broke |
//! | [`time`] | timestamps, passed as arguments |

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

/// Declares an enumeration of names, with all of them, their texts, and the error for a text that is none of them.
macro_rules! named_enum {
    (
        $(#[$about:meta])* pub enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }
        else $unknown:ty = $make:expr
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $($(#[$doc])* $variant,)+ }

        impl $type {
            /// All, in their order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $unknown;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let make: fn(&str) -> $unknown = $make;
                Self::ALL.into_iter().find(|known| known.as_str() == name).ok_or_else(|| make(name))
            }
        }
    };
}

pub mod app;
pub mod engine;
pub mod finding;
pub mod frame;
#[cfg(feature = "skills")]
pub mod front_matter;
pub mod http;
pub mod jsonrpc;
pub mod model;
pub mod param_headers;
pub mod peer;
pub mod revision;
pub mod rule;
#[cfg(feature = "schema")]
pub mod schema;
#[cfg(feature = "skills")]
pub mod skill;
pub mod time;
pub mod uri_template;
