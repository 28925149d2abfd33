//! What servers and clients tell about themselves.

mod client;
mod resource;
mod server;
mod token;

pub use client::{ClientMetadata, Registered};
pub use resource::ResourceMetadata;
pub use server::ServerMetadata;
pub use token::{OAuthError, TokenResponse};
