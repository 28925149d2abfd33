//! Clients that speak no HTTP, or no TLS where it is wanted. They never reach a route; they are counted and logged as other
//! refusals are.

use axum::http::StatusCode;

use crate::access::caller::Client;
use crate::endpoint::EndpointState;
use crate::refusal::{Reason, Refusal};

impl EndpointState {
    /// Reports a head that hyper has refused by itself; other ends of a connection are no refusals. The text of such a
    /// fault has nothing of the head.
    pub(super) fn refused_head(&self, client: Client, fault: &hyper::Error, is_tls: bool) {
        if !fault.is_parse() {
            return;
        }
        let status = if fault.is_parse_too_large() {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        } else {
            StatusCode::BAD_REQUEST
        };
        let why = if is_tls { "TLS, where plain HTTP is served".into() } else { fault.to_string() };
        self.refused(client, None, None, &Refusal::new(status, Reason::Malformed, why));
    }

    /// Reports a TLS handshake that failed. A client that closes before its end, as checks of a port do, is not refused.
    #[cfg(feature = "tls")]
    pub(super) fn refused_handshake(&self, client: Client, fault: &std::io::Error) {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};

        use tokio_rustls::rustls::{Error, InvalidMessage};

        if matches!(fault.kind(), BrokenPipe | ConnectionReset | UnexpectedEof) {
            tracing::debug!(target: "refmcp::http", %fault, "no TLS");
            return;
        }
        let cause = fault.get_ref().and_then(|cause| cause.downcast_ref());
        let why = match cause {
            Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
                "not TLS, such as plain HTTP, where TLS is served".to_owned()
            }
            _ => fault.to_string(),
        };
        // There is no response, so the status is not logged.
        self.refused(client, None, None, &Refusal::bad_request(Reason::Handshake, why));
    }
}
