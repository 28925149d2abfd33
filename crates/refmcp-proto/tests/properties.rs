//! What holds whatever a client does.

#[path = "properties/conversation.rs"]
mod conversation;
#[path = "properties/streams.rs"]
mod streams;
