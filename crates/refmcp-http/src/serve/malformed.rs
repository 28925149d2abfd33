//! Clients that speak no HTTP, or no TLS where it is wanted, or speak or read too slowly. What they do is seen outside of
//! routes; it is counted and logged as other refusals are.

use std::error::Error as _;
use std::io;

use axum::http::StatusCode;
use refmcp_server::transport::NoMemory;

use crate::access::caller::Client;
use crate::endpoint::EndpointState;
use crate::refusal::{Reason, Refusal};

impl EndpointState {
    /// Reports a connection that hyper has ended by itself; other ends are no refusals. The text of such a fault has nothing
    /// that the client sent. `head_begun` is whether a part of a head has come: without one the connection was only idle.
    pub(super) fn refused_head(&self, client: Client, error: &hyper::Error, is_tls: bool, head_begun: bool) {
        if error.is_timeout() && head_begun {
            return self.refused_slow_head(client);
        }
        if let Some(error) = error.source().and_then(|source| source.downcast_ref::<h2::Error>())
            && !error.is_io()
            && !error.is_remote()
        {
            let refusal = Refusal::bad_request(Reason::Malformed, format!("HTTP/2: {error}"));
            return self.refused(client, None, None, &refusal);
        }
        let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        match io.map(io::Error::kind) {
            Some(io::ErrorKind::TimedOut) => return self.refused(client, None, None, &Refusal::unread()),
            Some(io::ErrorKind::QuotaExceeded) => {
                return self.refused(client, None, None, &Refusal::no_memory(NoMemory::Share));
            }
            _ => {}
        }
        if !error.is_parse() {
            return;
        }
        let status = if error.is_parse_too_large() {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        } else {
            StatusCode::BAD_REQUEST
        };
        let why = if is_tls { "TLS, where plain HTTP is served".into() } else { error.to_string() };
        self.refused(client, None, None, &Refusal::new(status, Reason::Malformed, why));
    }

    /// Reports a connection without a whole head in time.
    pub(super) fn refused_slow_head(&self, client: Client) {
        let refusal =
            Refusal::new(StatusCode::REQUEST_TIMEOUT, Reason::HeadTimeout, "the head took too long");
        self.refused(client, None, None, &refusal);
    }

    /// Reports a TLS handshake that failed after it had begun, for this reason or by taking too long.
    #[cfg(feature = "tls")]
    pub(super) fn refused_handshake(&self, client: Client, error: Option<&std::io::Error>) {
        use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};

        use tokio_rustls::rustls::{Error, InvalidMessage};

        let cause = error.and_then(|error| error.get_ref()).and_then(|cause| cause.downcast_ref());
        let why = match (cause, error) {
            (Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)), _) => {
                "not TLS, such as plain HTTP, where TLS is served".to_owned()
            }
            (_, Some(error))
                if matches!(
                    error.kind(),
                    BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
                ) =>
            {
                "the client left during the TLS handshake".to_owned()
            }
            (_, Some(error)) => error.to_string(),
            (_, None) => "the TLS handshake took too long".to_owned(),
        };
        self.refused(client, None, None, &Refusal::bad_request(Reason::Handshake, why));
    }
}
