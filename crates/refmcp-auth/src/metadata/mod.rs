//! Metadata documents and token endpoint responses.

mod client;
mod resource;
mod server;
mod token;

pub use client::{ClientMetadata, ClientRegistration};
pub use resource::ResourceMetadata;
pub use server::ServerMetadata;
pub use token::{OAuthError, TokenResponse};
