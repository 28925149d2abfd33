//! What every connector over HTTP is told: the URL, headers, settings and how to log in.

use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::{self, HeaderName, HeaderValue};
use refmcp_proto::engine::client::TransportError;
use refmcp_proto::jsonrpc::excerpt;

use super::connection::{Address, RequestTarget, UrlError};
use super::request::HeaderError;
use super::settings::HttpSettings;
use crate::auth::{Authorization, TokenManager};
use crate::transport::{BoxFuture, JsonObject};

/// A server at a URL.
#[derive(Debug, Clone)]
pub(crate) struct HttpEndpoint {
    pub(crate) address: Address,
    pub(crate) target: RequestTarget,
    pub(crate) host: HeaderValue,
    pub(crate) headers: HeaderMap,
    pub(crate) settings: HttpSettings,
    pub(crate) authorization: Option<Authorization>,
}

impl HttpEndpoint {
    pub(crate) fn new(address: Address) -> Result<Self, UrlError> {
        let (target, host) = (address.target()?, address.host_header()?);
        let (headers, settings) = (HeaderMap::new(), HttpSettings::default());
        Ok(Self { address, target, host, headers, settings, authorization: None })
    }

    pub(crate) fn add_header(
        &mut self,
        name: &str,
        value: &str,
        is_reserved: fn(&HeaderName) -> bool,
    ) -> Result<(), HeaderError> {
        let name = HeaderName::try_from(name).map_err(|_| HeaderError::Name(excerpt(name)))?;
        if is_reserved(&name) {
            return Err(HeaderError::Reserved(name));
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| HeaderError::Value(name.clone()))?;
        value.set_sensitive(true);
        self.headers.append(name, value);
        Ok(())
    }

    /// The login that is used: none where an `Authorization` header was set by hand.
    pub(crate) fn login(&self) -> Option<&Authorization> {
        self.authorization.as_ref().filter(|_| !self.headers.contains_key(header::AUTHORIZATION))
    }

    pub(crate) fn token_manager(&self) -> Option<Arc<TokenManager>> {
        Some(self.login()?.token_manager(&self.address, &self.settings))
    }

    /// See [`Connector::extensions`](crate::transport::Connector::extensions).
    pub(crate) fn extensions(&self) -> JsonObject {
        self.login().map(Authorization::extensions).unwrap_or_default()
    }

    /// See [`Connector::pending_login`](crate::transport::Connector::pending_login).
    pub(crate) fn pending_login(&self) -> Option<BoxFuture<'static, Result<(), TransportError>>> {
        Some(Box::pin(self.token_manager()?.login()?))
    }
}

/// The options that all connectors with an `endpoint` have.
macro_rules! endpoint_options {
    ($connector:ty, $is_reserved:path) => {
        impl $connector {
            /// Adds a header to every request, such as `Authorization`. It is never sent to another origin.
            ///
            /// # Errors
            /// It is no header, or one that the transport sets itself.
            pub fn header(mut self, name: &str, value: &str) -> Result<Self, $crate::http::HeaderError> {
                self.endpoint.add_header(name, value, $is_reserved)?;
                Ok(self)
            }

            /// How connections are made and used.
            #[must_use]
            pub fn settings(mut self, settings: $crate::http::HttpSettings) -> Self {
                self.endpoint.settings = settings;
                self
            }

            /// How to log in where the server wants authorization. A [`header`](Self::header) named `Authorization`
            /// takes precedence.
            #[must_use]
            pub fn authorization(mut self, authorization: $crate::auth::Authorization) -> Self {
                self.endpoint.authorization = Some(authorization);
                self
            }

            /// The URL of the server.
            pub fn address(&self) -> &$crate::http::Address {
                &self.endpoint.address
            }
        }
    };
}

pub(crate) use endpoint_options;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::is_reserved;

    #[test]
    fn reserved_and_invalid_headers_are_refused() {
        let mut endpoint = HttpEndpoint::new(Address::http("http://h").unwrap()).unwrap();
        let mut add = |name: &str, value: &str| endpoint.add_header(name, value, is_reserved);
        for name in
            ["Host", "Connection", "mcp-session-id", "MCP-Protocol-Version", "Mcp-Param-x", "Last-Event-ID"]
        {
            assert!(matches!(add(name, "x"), Err(HeaderError::Reserved(_))), "{name}");
        }
        assert!(matches!(add("a b", "x"), Err(HeaderError::Name(_))));
        let secret = add("authorization", "Bearer\nsecret").unwrap_err();
        assert!(!secret.to_string().contains("secret"));
        add("Authorization", "Bearer secret").unwrap();
        assert!(!format!("{endpoint:?}").contains("secret"));
    }
}
