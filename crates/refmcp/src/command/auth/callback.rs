//! Where a browser comes back to after a login: a listener on this machine that takes one answer and nothing else.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use refmcp_client::auth::{BrowserError, is_redirect_for};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

/// The path that browsers come back to.
const PATH: &str = "/callback";
/// Connections there may be at once; browsers open some in advance.
const MAX_CONNECTIONS: usize = 32;
/// How long a head may take to arrive, and how long a connection may last.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a head.
const MAX_HEAD: usize = 32 << 10;
/// How long nothing is accepted when the system has run out of something.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A page may run nothing, load nothing and be shown in nothing.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What a browser shows in the end. Nothing of the address is on it.
const TAKEN: &str = "refmcp has its answer; how it went is said there. You can close this window.";
const NOT_THIS: &str = "This is not the answer that refmcp waits for.";

/// Why no redirect of this login came in time, where another one did.
const OTHER_LOGIN: &str = "a browser came back, but with the state of another login, and none with this one's in time: \
                           the authorization server mixes them up, or the redirect was forged";

/// A listener for browsers that come back.
#[derive(Debug)]
pub(crate) struct Callback {
    listener: TcpListener,
    address: SocketAddr,
}

/// One login that is waited for.
struct Waiting {
    /// The only name that we are called by.
    host: String,
    /// Where the person was sent.
    sent: Url,
    taken: AtomicBool,
    /// Whether a browser came back with something else.
    other_login: AtomicBool,
}

impl Callback {
    /// Listens on this machine; at port 0, wherever there is room.
    pub(crate) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where browsers are to be sent back to.
    pub(crate) fn redirect_uri(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Waits for the redirect that answers the login page `sent`; gives the address it came to.
    pub(crate) async fn wait(&self, sent: &Url, limit: Duration) -> Result<Url, BrowserError> {
        let waiting = Arc::new(Waiting {
            host: self.address.to_string(),
            sent: sent.clone(),
            taken: AtomicBool::new(false),
            other_login: AtomicBool::new(false),
        });
        match timeout(limit, self.come_back(&waiting)).await {
            Ok(url) => Ok(url),
            Err(_) if waiting.other_login.load(Ordering::Relaxed) => {
                Err(BrowserError::Failed(OTHER_LOGIN.to_owned()))
            }
            Err(_) => Err(BrowserError::TimedOut),
        }
    }

    async fn come_back(&self, waiting: &Arc<Waiting>) -> Url {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(serve(stream, waiting.clone()));
                    }
                    Err(error) => {
                        tracing::debug!(%error, "cannot accept a connection of the browser");
                        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    }
                },
                Some(ended) = connections.join_next() => {
                    // The page is written by then.
                    if let Ok(Some(url)) = ended {
                        return url;
                    }
                }
            }
        }
    }
}

/// Answers one request; gives the address when it is what was waited for.
async fn serve(stream: TcpStream, waiting: Arc<Waiting>) -> Option<Url> {
    let found: Arc<OnceLock<Url>> = Arc::default();
    let answering = found.clone();
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let response = waiting.answer(&request, &answering);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // A connection without HTTP, or that was closed, gets no page.
    let _ended = timeout(CONNECTION_TIMEOUT, connection).await;
    found.get().cloned()
}

impl Waiting {
    fn answer<B>(&self, request: &Request<B>, found: &OnceLock<Url>) -> Response<Full<Bytes>> {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let ours = matches!((hosts.next(), hosts.next()), (Some(host), None) if host == self.host.as_str());
        if !ours || request.uri().authority().is_some() {
            return page(StatusCode::FORBIDDEN, "This Host is not served here.");
        }
        if request.uri().path() != PATH {
            return page(StatusCode::NOT_FOUND, "There is nothing here.");
        }
        if request.method() != Method::GET {
            let mut response = page(StatusCode::METHOD_NOT_ALLOWED, "Only GET is answered here.");
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
            return response;
        }
        let query = request.uri().query().unwrap_or_default();
        let Ok(url) = Url::parse(&format!("http://{}{PATH}?{query}", self.host)) else {
            return page(StatusCode::BAD_REQUEST, NOT_THIS);
        };
        if !is_redirect_for(&self.sent, &url) {
            self.other_login.store(true, Ordering::Relaxed);
            return page(StatusCode::BAD_REQUEST, NOT_THIS);
        }
        if self.taken.swap(true, Ordering::Relaxed) {
            return page(StatusCode::GONE, "The answer was given already. You can close this window.");
        }
        // It was empty: this connection answers one request.
        let _ = found.set(url);
        page(StatusCode::OK, TAKEN)
    }
}

fn page(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>refmcp</title>\n<p>{text}</p>\n</html>\n"
    );
    let mut response = Response::new(Full::new(Bytes::from(html)));
    *response.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn sent() -> Url {
        Url::parse("https://issuer.example/authorize?client_id=c&state=right").unwrap()
    }

    async fn say(address: SocketAddr, request: String) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    async fn get(address: SocketAddr, target: &str) -> String {
        say(address, format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n")).await
    }

    #[tokio::test]
    async fn one_answer_is_taken_among_everything_else() {
        let callback = Callback::bind(0).await.unwrap();
        let (address, uri) = (callback.address, callback.redirect_uri());
        assert_eq!(uri, format!("http://127.0.0.1:{}/callback", address.port()));
        let waiting = tokio::spawn(async move { callback.wait(&sent(), LONG).await });
        // A connection that sends nothing does not block the others.
        let mut silent = Vec::new();
        for _ in 0..5 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let right = "/callback?code=hush&state=right";
        for (request, status) in [
            (format!("GET /favicon.ico HTTP/1.1\r\nHost: {address}\r\n\r\n"), "404"),
            (format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n"), "404"),
            (format!("POST {right} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n"), "405"),
            (format!("GET {right} HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "403"),
            (format!("GET {right} HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", address.port()), "403"),
            (format!("GET {right} HTTP/1.1\r\nHost: {address}\r\nHost: {address}\r\n\r\n"), "403"),
            (format!("GET http://evil.example{right} HTTP/1.1\r\nHost: {address}\r\n\r\n"), "403"),
            (format!("GET /callback HTTP/1.1\r\nHost: {address}\r\n\r\n"), "400"),
            (format!("GET /callback?code=hush&state=wrong HTTP/1.1\r\nHost: {address}\r\n\r\n"), "400"),
            (format!("GET {right}&state=right HTTP/1.1\r\nHost: {address}\r\n\r\n"), "400"),
            (format!("GET {right}&x={} HTTP/1.1\r\nHost: {address}\r\n\r\n", "y".repeat(64 << 10)), "431"),
        ] {
            let response = say(address, request).await;
            assert_eq!(response.get(9..12), Some(status), "{response}");
            assert!(!response.contains("hush"), "{response}");
        }
        let response = get(address, right).await;
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        assert!(response.contains("You can close this window") && !response.contains("hush"), "{response}");
        assert!(response.contains("content-security-policy: default-src 'none'"), "{response}");
        let url = waiting.await.unwrap().unwrap();
        assert_eq!(url.as_str(), format!("{uri}?code=hush&state=right"));
        drop(silent);
    }

    #[tokio::test]
    async fn waiting_ends_and_says_who_came() {
        let callback = Callback::bind(0).await.unwrap();
        let short = Duration::from_millis(1);
        assert_eq!(callback.wait(&sent(), short).await, Err(BrowserError::TimedOut));
        let address = callback.address;
        let came = tokio::spawn(async move { get(address, "/callback?code=1&state=wrong").await });
        let sent = sent();
        let (missed, came) = tokio::join!(callback.wait(&sent, Duration::from_millis(500)), came);
        assert_eq!(missed, Err(BrowserError::Failed(OTHER_LOGIN.to_owned())));
        assert!(came.unwrap().contains(NOT_THIS));
    }
}
