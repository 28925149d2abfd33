//! Conversations with the engine, without a transport.
