//! What holds whatever a client does.

#[path = "properties/engine.rs"]
mod engine;
#[path = "properties/streams.rs"]
mod streams;
