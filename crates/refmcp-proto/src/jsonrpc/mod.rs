//! JSON-RPC 2.0: bytes to messages and back, strictly.
//!
//! [`decode`] reads the envelope of a message and leaves its parameters as text, which are parsed once, by the type of the
//! method. [`encode`] appends messages to a buffer.

mod decode;
pub mod encode;
mod error;
mod error_instead;
mod id;
mod members;
mod read;
mod scan;

pub use decode::{
    DecodeError, Incoming, Limits, Message, Meta, Notification, ParamSpans, Params, Request, Response,
    ResultMembers, decode,
};
pub use error::{RpcError, code, excerpt, log_excerpt};
pub use error_instead::{error_instead, id_of};
pub use id::{ProgressToken, RequestId};
pub use members::members_in_order;
pub use read::{read_member, without_place};
