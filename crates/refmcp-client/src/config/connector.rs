//! From an entry to a way to reach its server.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "http")]
use super::Secret;
use super::problem::Problem;
use super::{Launch, ServerEntry};
#[cfg(feature = "http")]
use crate::auth::Authorization;
#[cfg(feature = "http")]
use crate::http::{HeaderError, HttpSse, StreamableHttp, UrlError};
use crate::transport::Connector;
#[cfg(feature = "websocket")]
use crate::websocket::WebSocket;

impl ServerEntry {
    /// How to reach the server; its variables have to be filled in by [`Servers::resolve`](super::Servers::resolve)
    /// first. A file with environment variables is read here.
    ///
    /// # Errors
    /// Something in the entry cannot be used, or this library was built without the transport it needs.
    pub fn connector(&self) -> Result<Arc<dyn Connector>, Problem> {
        match &self.launch {
            Launch::Command { .. } => self.command(),
            #[cfg(feature = "http")]
            _ => self.remote(None),
            #[cfg(not(feature = "http"))]
            _ => Err(self.wrong("url", &"cannot be used: this library was built without HTTP")),
        }
    }

    /// The same; where the server is reached over HTTP or WebSocket, this is how to get in.
    ///
    /// # Errors
    /// As [`connector`](Self::connector).
    #[cfg(feature = "http")]
    pub fn authorized(&self, authorization: &Authorization) -> Result<Arc<dyn Connector>, Problem> {
        self.remote(Some(authorization))
    }

    #[cfg(feature = "child")]
    fn command(&self) -> Result<Arc<dyn Connector>, Problem> {
        match self.child()? {
            Some(child) => Ok(Arc::new(child)),
            None => Err(self.wrong("command", &"is missing")),
        }
    }

    #[cfg(not(feature = "child"))]
    fn command(&self) -> Result<Arc<dyn Connector>, Problem> {
        Err(self.wrong("command", &"cannot be used: this library was built without child processes"))
    }

    #[cfg(feature = "http")]
    fn remote(&self, authorization: Option<&Authorization>) -> Result<Arc<dyn Connector>, Problem> {
        match &self.launch {
            Launch::Command { .. } => self.command(),
            Launch::Http { url, headers } => self.reach(StreamableHttp::new(url), headers, authorization),
            Launch::Sse { url, headers } => self.reach(HttpSse::new(url), headers, authorization),
            #[cfg(feature = "websocket")]
            Launch::WebSocket { url, headers } => self.reach(WebSocket::new(url), headers, authorization),
            #[cfg(not(feature = "websocket"))]
            Launch::WebSocket { .. } => {
                Err(self.wrong("url", &"cannot be used: this library was built without WebSocket"))
            }
        }
    }

    #[cfg(feature = "http")]
    fn reach<S: Remote>(
        &self,
        server: Result<S, UrlError>,
        headers: &[(String, Secret)],
        authorization: Option<&Authorization>,
    ) -> Result<Arc<dyn Connector>, Problem> {
        let mut server = server.map_err(|fault| self.wrong("url", &fault))?;
        if let Some(authorization) = authorization {
            server = server.authorized(authorization.clone());
        }
        for (name, value) in headers {
            server = server.with(name, value.reveal()).map_err(|fault| self.wrong("headers", &fault))?;
        }
        Ok(Arc::new(server))
    }

    fn wrong(&self, member: &str, why: &dyn fmt::Display) -> Problem {
        Problem::error(&self.source, why.to_string()).of_server(&self.name).of_member(member)
    }
}

/// What can be set about a server that is reached by a URL.
#[cfg(feature = "http")]
trait Remote: Connector + Sized + 'static {
    fn with(self, name: &str, value: &str) -> Result<Self, HeaderError>;
    fn authorized(self, authorization: Authorization) -> Self;
}

#[cfg(feature = "http")]
impl Remote for StreamableHttp {
    fn with(self, name: &str, value: &str) -> Result<Self, HeaderError> {
        self.header(name, value)
    }

    fn authorized(self, authorization: Authorization) -> Self {
        self.authorization(authorization)
    }
}

#[cfg(feature = "http")]
impl Remote for HttpSse {
    fn with(self, name: &str, value: &str) -> Result<Self, HeaderError> {
        self.header(name, value)
    }

    fn authorized(self, authorization: Authorization) -> Self {
        self.authorization(authorization)
    }
}

#[cfg(feature = "websocket")]
impl Remote for WebSocket {
    fn with(self, name: &str, value: &str) -> Result<Self, HeaderError> {
        self.header(name, value)
    }

    fn authorized(self, authorization: Authorization) -> Self {
        self.authorization(authorization)
    }
}
