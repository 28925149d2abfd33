//! The probes of HTTP+SSE.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Response};
use axum::middleware::{Next, from_fn};
use refmcp_check::{Checker, Options, Target};
use refmcp_client::http::HttpSettings;
use refmcp_http::Endpoint;
use tokio::net::TcpListener;

use crate::servers::reference;

/// What a server does with a request that is none of a client's, whose requests name the client.
type Answer = fn(&HeaderMap) -> Option<Response<Body>>;

/// The rules that such a server breaks.
async fn broken(probe: &str, answer: Answer, takes_any_origin: bool) -> Vec<&'static str> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let layer = from_fn(move |mut request: Request, next: Next| async move {
        let is_probe = request.method() == Method::GET && !request.headers().contains_key("user-agent");
        if let Some(answered) = is_probe.then(|| answer(request.headers())).flatten() {
            return answered;
        }
        if takes_any_origin {
            request.headers_mut().remove("origin");
        }
        next.run(request).await
    });
    let router = Endpoint::builder(reference()).build().router().layer(layer);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let target = Target::http_sse(&format!("http://{address}/sse"), HttpSettings::default(), Vec::new());
    let mut options = Options::default();
    options.probes = vec![probe.to_owned()];
    let report = Checker::new(target.unwrap(), options).run(|_| {}).await;
    assert!(report.is_verified(), "{report:#?}");
    report.broken().map(|result| result.rule.id).collect()
}

fn events(text: &'static str) -> Response<Body> {
    Response::builder().header("content-type", "text/event-stream").body(Body::from(text)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_none_is_reported() {
    assert_eq!(broken("sse-endpoint", |_| None, false).await, [""; 0]);
    assert_eq!(broken("sse-endpoint", |_| Some(Response::new(Body::from("{}"))), false).await, ["SSE-01"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_does_not_begin_with_its_endpoint_is_reported() {
    let late: Answer = |_| Some(events("data: {}\n\nevent: endpoint\ndata: /message\n\n"));
    assert_eq!(broken("sse-endpoint", late, false).await, ["SSE-02"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_any_origin_is_reported() {
    assert_eq!(broken("sse-foreign-origin", |_| None, false).await, [""; 0]);
    assert_eq!(broken("sse-foreign-origin", |_| None, true).await, ["SSE-05", "HTTP-02"]);
}
