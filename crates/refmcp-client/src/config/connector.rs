//! From an entry to a way to reach its server.

use std::fmt;
use std::sync::Arc;

use super::problem::Problem;
use super::{Launch, Secret, ServerEntry};
use crate::wire::Connector;

impl ServerEntry {
    /// How to reach the server; its variables have to be filled in by [`Servers::resolve`](super::Servers::resolve)
    /// first. A file with environment variables is read here.
    ///
    /// # Errors
    /// Something in the entry cannot be used, or this library was built without the transport it needs.
    pub fn connector(&self) -> Result<Arc<dyn Connector>, Problem> {
        match &self.launch {
            Launch::Command { .. } => self.command(),
            Launch::Http { url, headers } => self.http(url, headers),
            Launch::Sse { url, headers } => self.sse(url, headers),
            Launch::WebSocket { url, headers } => self.websocket(url, headers),
        }
    }

    #[cfg(feature = "child")]
    fn command(&self) -> Result<Arc<dyn Connector>, Problem> {
        match self.child()? {
            Some(child) => Ok(Arc::new(child)),
            None => Err(self.wrong("command", &"is missing")),
        }
    }

    #[cfg(feature = "http")]
    fn http(&self, url: &str, headers: &[(String, Secret)]) -> Result<Arc<dyn Connector>, Problem> {
        let server = crate::http::StreamableHttp::new(url).map_err(|fault| self.wrong("url", &fault))?;
        let add = |server: crate::http::StreamableHttp, (name, value): &(String, Secret)| {
            server.header(name, value.reveal()).map_err(|fault| self.wrong("headers", &fault))
        };
        Ok(Arc::new(headers.iter().try_fold(server, add)?))
    }

    #[cfg(feature = "http")]
    fn sse(&self, url: &str, headers: &[(String, Secret)]) -> Result<Arc<dyn Connector>, Problem> {
        let server = crate::http::HttpSse::new(url).map_err(|fault| self.wrong("url", &fault))?;
        let add = |server: crate::http::HttpSse, (name, value): &(String, Secret)| {
            server.header(name, value.reveal()).map_err(|fault| self.wrong("headers", &fault))
        };
        Ok(Arc::new(headers.iter().try_fold(server, add)?))
    }

    #[cfg(feature = "websocket")]
    fn websocket(&self, url: &str, headers: &[(String, Secret)]) -> Result<Arc<dyn Connector>, Problem> {
        let server = crate::websocket::WebSocket::new(url).map_err(|fault| self.wrong("url", &fault))?;
        let add = |server: crate::websocket::WebSocket, (name, value): &(String, Secret)| {
            server.header(name, value.reveal()).map_err(|fault| self.wrong("headers", &fault))
        };
        Ok(Arc::new(headers.iter().try_fold(server, add)?))
    }

    #[cfg(not(feature = "child"))]
    fn command(&self) -> Result<Arc<dyn Connector>, Problem> {
        Err(self.wrong("command", &"cannot be used: this library was built without child processes"))
    }

    #[cfg(not(feature = "http"))]
    fn http(&self, _: &str, _: &[(String, Secret)]) -> Result<Arc<dyn Connector>, Problem> {
        Err(self.wrong("url", &"cannot be used: this library was built without HTTP"))
    }

    #[cfg(not(feature = "http"))]
    fn sse(&self, _: &str, _: &[(String, Secret)]) -> Result<Arc<dyn Connector>, Problem> {
        Err(self.wrong("url", &"cannot be used: this library was built without HTTP"))
    }

    #[cfg(not(feature = "websocket"))]
    fn websocket(&self, _: &str, _: &[(String, Secret)]) -> Result<Arc<dyn Connector>, Problem> {
        Err(self.wrong("url", &"cannot be used: this library was built without WebSocket"))
    }

    fn wrong(&self, member: &str, why: &dyn fmt::Display) -> Problem {
        Problem::error(&self.source, why.to_string()).of_server(&self.name).of_member(member)
    }
}
