//! Tasks that a client runs for a server (2025-11-25): the rules of both sides, without sockets and with time as an argument.

mod both;
mod client;
mod server;
