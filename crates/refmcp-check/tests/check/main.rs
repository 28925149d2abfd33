//! Whole checks: of our own server, which is clean, and of servers that break one rule each.

mod altered;
mod broken_rules;
mod examples;
mod failing;
mod formats;
mod harmless;
mod not_verified;
mod own_server;
mod servers;
mod sse;
mod unauthorized;
