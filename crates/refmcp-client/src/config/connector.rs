//! From an entry to a way to reach its server.

use std::fmt;
use std::sync::Arc;

use super::problem::Problem;
use super::{Launch, Secret, ServerEntry};
#[cfg(feature = "auth")]
use crate::auth::Authorization;
use crate::wire::Connector;

/// Without the feature there is none.
#[cfg(not(feature = "auth"))]
enum Authorization {}

impl ServerEntry {
    /// How to reach the server; its variables have to be filled in by [`Servers::resolve`](super::Servers::resolve)
    /// first. A file with environment variables is read here.
    ///
    /// # Errors
    /// Something in the entry cannot be used, or this library was built without the transport it needs.
    pub fn connector(&self) -> Result<Arc<dyn Connector>, Problem> {
        self.connector_with(None)
    }

    /// The same; where the server is reached over HTTP or WebSocket, this is how to get in.
    ///
    /// # Errors
    /// As [`connector`](Self::connector).
    #[cfg(feature = "auth")]
    pub fn authorized(
        &self,
        authorization: &crate::auth::Authorization,
    ) -> Result<Arc<dyn Connector>, Problem> {
        self.connector_with(Some(authorization))
    }

    fn connector_with(&self, authorization: Option<&Authorization>) -> Result<Arc<dyn Connector>, Problem> {
        match &self.launch {
            Launch::Command { .. } => self.command(),
            Launch::Http { url, headers } => self.http(url, headers, authorization),
            Launch::Sse { url, headers } => self.sse(url, headers, authorization),
            Launch::WebSocket { url, headers } => self.websocket(url, headers, authorization),
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
    fn http(
        &self,
        url: &str,
        headers: &[(String, Secret)],
        authorization: Option<&Authorization>,
    ) -> Result<Arc<dyn Connector>, Problem> {
        let server = crate::http::StreamableHttp::new(url).map_err(|fault| self.wrong("url", &fault))?;
        let server = match authorization {
            #[cfg(feature = "auth")]
            Some(authorization) => server.authorization(authorization.clone()),
            #[cfg(not(feature = "auth"))]
            Some(never) => match *never {},
            None => server,
        };
        let add = |server: crate::http::StreamableHttp, (name, value): &(String, Secret)| {
            server.header(name, value.reveal()).map_err(|fault| self.wrong("headers", &fault))
        };
        Ok(Arc::new(headers.iter().try_fold(server, add)?))
    }

    #[cfg(feature = "http")]
    fn sse(
        &self,
        url: &str,
        headers: &[(String, Secret)],
        authorization: Option<&Authorization>,
    ) -> Result<Arc<dyn Connector>, Problem> {
        let server = crate::http::HttpSse::new(url).map_err(|fault| self.wrong("url", &fault))?;
        let server = match authorization {
            #[cfg(feature = "auth")]
            Some(authorization) => server.authorization(authorization.clone()),
            #[cfg(not(feature = "auth"))]
            Some(never) => match *never {},
            None => server,
        };
        let add = |server: crate::http::HttpSse, (name, value): &(String, Secret)| {
            server.header(name, value.reveal()).map_err(|fault| self.wrong("headers", &fault))
        };
        Ok(Arc::new(headers.iter().try_fold(server, add)?))
    }

    #[cfg(feature = "websocket")]
    fn websocket(
        &self,
        url: &str,
        headers: &[(String, Secret)],
        authorization: Option<&Authorization>,
    ) -> Result<Arc<dyn Connector>, Problem> {
        let server = crate::websocket::WebSocket::new(url).map_err(|fault| self.wrong("url", &fault))?;
        let server = match authorization {
            #[cfg(feature = "auth")]
            Some(authorization) => server.authorization(authorization.clone()),
            #[cfg(not(feature = "auth"))]
            Some(never) => match *never {},
            None => server,
        };
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
    fn http(
        &self,
        _: &str,
        _: &[(String, Secret)],
        _: Option<&Authorization>,
    ) -> Result<Arc<dyn Connector>, Problem> {
        Err(self.wrong("url", &"cannot be used: this library was built without HTTP"))
    }

    #[cfg(not(feature = "http"))]
    fn sse(
        &self,
        _: &str,
        _: &[(String, Secret)],
        _: Option<&Authorization>,
    ) -> Result<Arc<dyn Connector>, Problem> {
        Err(self.wrong("url", &"cannot be used: this library was built without HTTP"))
    }

    #[cfg(not(feature = "websocket"))]
    fn websocket(
        &self,
        _: &str,
        _: &[(String, Secret)],
        _: Option<&Authorization>,
    ) -> Result<Arc<dyn Connector>, Problem> {
        Err(self.wrong("url", &"cannot be used: this library was built without WebSocket"))
    }

    fn wrong(&self, member: &str, why: &dyn fmt::Display) -> Problem {
        Problem::error(&self.source, why.to_string()).of_server(&self.name).of_member(member)
    }
}
