//! Recordings used again: replayed as a client against a server, as a server against a client, and compared.
//!
//! | module | what it is |
//! |---|---|
//! | `conversation` | what one client and one server of a recording sent each other, step by step |
//! | `part` | single messages: whose answer each one is, and to which request it belongs |
//! | `client` | what the client of a recording sends, once what it waited for has come |
//! | `substitution` | values that a server made up, and what another server made up in their place |
//! | `server` | the server of a recording as a mock: messages of a client in, recorded answers out |
//! | `compare` | what differs between two conversations, request by request |
//! | `json_text` | values replaced in a JSON text whose other bytes stay |
//!
//! None of it does IO or reads a clock.
//!
//! ```
//! use refmcp_audit::replay::{Comparison, Mock, MockOutput, conversations};
//!
//! let recording = r#"
//!     {"at":1,"event":"opened","connection":1,"side":"client","transport":"stdio","peer":""}
//!     {"at":2,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":7,"method":"ping"}}
//!     {"at":3,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":7,"result":{}}}
//! "#;
//! let conversations = conversations(recording.as_bytes())?;
//! let mut session = Mock::new(&conversations).session();
//! let answers = session.receive(1, r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
//! let MockOutput::Message(answer) = &answers[0] else { panic!("{answers:?}") };
//! assert_eq!(answer.text, r#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
//!
//! assert!(Comparison::between(&conversations, &conversations, &[]).is_same());
//! # Ok::<(), refmcp_audit::replay::ConversationsError>(())
//! ```

mod client;
mod compare;
mod conversation;
mod json_text;
mod part;
mod server;
mod substitution;

pub use client::{ClientReplay, ReplayAction, ReplayState, ReplayTransport};
pub use compare::{Change, ChangeKind, Comparison, Difference, DifferenceKind, comparison_text};
pub use conversation::{
    Content, ConversationBuilder, Conversations, ConversationsError, RecordedConversation, Step,
    conversations,
};
pub use part::{Part, PartKind};
pub use server::{HttpAnswer, Mock, MockMessage, MockOutput, MockSession};
