//! The operators' listener: few connections, one request each, over plain HTTP/1.1.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::pause_after;
use crate::access::caller::Client;
use crate::endpoint::Endpoint;

/// Connections at once; further ones wait.
const MAX_CONNECTIONS: usize = 64;

/// How long one connection may last, and how long a head may take.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

impl Endpoint {
    /// Serves `/healthz`, `/readyz` and `/metrics` on a listener of their own until `stop` is cancelled. If that is done
    /// after [`Endpoint::serve`] has returned, operators see until the end that the server is not ready.
    pub async fn serve_ops(&self, listener: TcpListener, stop: CancellationToken) {
        let address = listener.local_addr().ok().map(tracing::field::display);
        tracing::info!(target: "refmcp::http", address, "listening for operators");
        let (connections, room) = (TaskTracker::new(), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
        let serving = async {
            loop {
                // The semaphore is never closed.
                let Ok(permit) = room.clone().acquire_owned().await else { return };
                match listener.accept().await {
                    Ok((stream, peer)) => {
                        let client = Client::new(peer, stream.local_addr().ok());
                        let endpoint = self.clone();
                        connections.spawn(async move {
                            let _permit = permit;
                            let served =
                                timeout(CONNECTION_TIMEOUT, endpoint.serve_ops_connection(stream, client))
                                    .await;
                            if !matches!(served, Ok(Ok(()))) {
                                tracing::debug!(target: "refmcp::http", "an operator's connection broke off");
                            }
                            if let Ok(Err(error)) = served {
                                endpoint.inner.refused_head(client, &error, false, true);
                            }
                        });
                    }
                    Err(error) => pause_after(&error).await,
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = serving => {}
        }
        connections.close();
        let _ = timeout(Duration::from_secs(1), connections.wait()).await;
    }

    async fn serve_ops_connection(&self, stream: TcpStream, client: Client) -> hyper::Result<()> {
        let service = service_fn(|request: hyper::Request<Incoming>| async move {
            Ok::<_, Infallible>(self.answer_ops(client, &request.into_parts().0).await)
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).keep_alive(false);
        builder.serve_connection(TokioIo::new(stream), service).await
    }
}
