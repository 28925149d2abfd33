//! The HTTP endpoint: no request makes it fail, headers that mirror the body are accepted if and only if they do, and
//! event ids and cursors that it has not given out are refused.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Request, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt;
use refmcp_http::{Endpoint, Options};
use refmcp_proto::jsonrpc::code;
use refmcp_proto::revision::Revision;
use refmcp_server::model::JsonObject;
use refmcp_server::{Call, CallError, Server, Tool};
use refmcp_testkit::messages::{INITIALIZED, initialize_params, request_meta};
use serde_json::{Value, json};
use tower_service::Service;

use crate::input::Input;

/// A revision with sessions.
const SESSION: &str = Revision::LATEST_SESSION.as_str();
/// The revision without.
const STATELESS: &str = Revision::LATEST.as_str();

/// The most requests of one run.
const MAX_REQUESTS: usize = 8;

/// How long a body that need not end is read.
const PATIENCE: Duration = Duration::from_millis(10);

/// The first byte picks what is tried.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let mut site = Site::new();
        match input.below(4) {
            0 => any_requests(&mut site, &mut input).await,
            1 => mirrored_headers(&mut site, &mut input).await,
            2 => event_ids(&mut site, &mut input).await,
            _ => cursors(&mut site, &mut input).await,
        }
    });
}

struct Site {
    router: Router,
    /// Its background task ends with it.
    _endpoint: Endpoint,
}

struct Answer {
    status: StatusCode,
    session: Option<HeaderValue>,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }
}

impl Site {
    fn new() -> Self {
        let endpoint =
            Endpoint::builder(server()).options(Options { rate: None, ..Options::default() }).build();
        Self { router: endpoint.router(), _endpoint: endpoint }
    }

    async fn send(&mut self, request: Request<Body>) -> Answer {
        let (shown, has_session) = (format!("{request:?}"), request.headers().contains_key("mcp-session-id"));
        let response = self.router.call(request).await.unwrap_or_else(|never| match never {});
        let (head, mut body) = response.into_parts();
        assert!(!head.status.is_server_error(), "{} for {shown}", head.status);
        let mut bytes = Vec::new();
        // A stream that stays open is read as far as it has come.
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(PATIENCE, body.frame()).await {
            bytes.extend(frame.into_data().unwrap_or_default());
            assert!(bytes.len() < 1 << 20, "a body without an end");
        }
        let answer =
            Answer { status: head.status, session: head.headers.get("mcp-session-id").cloned(), body: bytes };
        assert!(answer.session.is_none() || !has_session || answer.status.is_success());
        let kind =
            head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind == "application/json" {
            let message = answer.json();
            assert!(message.is_object() || message.is_array(), "{message}");
        }
        answer
    }

    /// Posts a message as a client without a session does.
    async fn post(
        &mut self,
        method: &str,
        name: Option<&str>,
        headers: &[(&str, String)],
        params: Value,
    ) -> Answer {
        let mut params = params;
        params["_meta"] = request_meta("c", STATELESS, json!({}));
        let mut request = request_to("POST", &request(1, method, &params).to_string());
        let fixed = [("mcp-protocol-version", STATELESS.to_owned()), ("mcp-method", method.to_owned())];
        let name = name.map(|name| ("mcp-name", mirrored(name)));
        for (name, value) in fixed.iter().chain(&name).chain(headers) {
            let value = HeaderValue::from_str(value).expect("an encoded value");
            request.headers_mut().append(HeaderName::from_bytes(name.as_bytes()).expect("a name"), value);
        }
        self.send(request).await
    }

    /// Opens a session.
    async fn open(&mut self) -> HeaderValue {
        let params = initialize_params("c", SESSION, json!({}));
        let opened = self.send(request_to("POST", &request(0, "initialize", &params).to_string())).await;
        let session = opened.session.expect("a session");
        let mut ready = request_to("POST", INITIALIZED);
        in_session(&mut ready, &session);
        assert_eq!(self.send(ready).await.status, StatusCode::ACCEPTED);
        session
    }
}

/// A server with pages of one tool, and a tool whose argument is mirrored in a header.
fn server() -> Server {
    async fn echo(_: Call, arguments: JsonObject) -> Result<String, CallError> {
        Ok(Value::Object(arguments).to_string())
    }
    let schema = json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
    });
    let schema = schema.as_object().cloned().unwrap_or_default();
    let tool = |name: &str| Tool::new(name, "Repeats its arguments", echo).input_schema(schema.clone());
    let builder = Server::builder("fuzzed", "1").page_size(1).seal_key([1; 32]);
    builder.tool(tool("one")).tool(tool("two")).tool(tool("three")).build().expect("a server")
}

fn request(id: u8, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn request_to(method: &str, body: &str) -> Request<Body> {
    let request =
        Request::builder().method(method).uri("http://localhost/mcp").header(header::HOST, "localhost");
    let request = request.header(header::ACCEPT, "application/json, text/event-stream");
    let request = request.header(header::CONTENT_TYPE, "application/json");
    request.body(Body::from(body.to_owned())).expect("a request")
}

fn in_session(request: &mut Request<Body>, session: &HeaderValue) {
    let headers = request.headers_mut();
    headers.insert("mcp-session-id", session.clone());
    headers.insert("mcp-protocol-version", HeaderValue::from_static(SESSION));
}

/// A value as a header has it: what a header cannot hold is base64 between marks.
fn mirrored(value: &str) -> String {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && value.trim() == value
        && !value.starts_with("=?base64?");
    if plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
}

/// Requests with any headers and any bodies.
async fn any_requests(site: &mut Site, input: &mut Input<'_>) {
    const NAMES: [HeaderName; 12] = [
        header::ACCEPT,
        header::CONTENT_TYPE,
        header::HOST,
        header::ORIGIN,
        header::AUTHORIZATION,
        header::UPGRADE,
        HeaderName::from_static("mcp-protocol-version"),
        HeaderName::from_static("mcp-session-id"),
        HeaderName::from_static("mcp-method"),
        HeaderName::from_static("mcp-name"),
        HeaderName::from_static("mcp-param-region"),
        HeaderName::from_static("last-event-id"),
    ];
    let params =
        |name: &str, meta: Value| json!({ "name": name, "arguments": { "region": "r" }, "_meta": meta });
    let stateless = request_meta("c", STATELESS, json!({}));
    let call = |id: u8, params: Value| request(id, "tools/call", &params).to_string();
    let bodies = [
        INITIALIZED.to_owned(),
        request(1, "tools/list", &json!({})).to_string(),
        call(2, params("one", json!({ "progressToken": 1 }))),
        json!([request(3, "ping", &json!({})), request(4, "ping", &json!({}))]).to_string(),
        call(5, params("two", stateless)),
    ];
    let session = site.open().await;
    for _ in 0..MAX_REQUESTS {
        if input.is_empty() {
            return;
        }
        let method = input.pick(&["POST", "POST", "GET", "DELETE", "PUT"]);
        let body = match input.below(bodies.len() + 1) {
            0 => input.text(),
            at => bodies[at - 1].clone(),
        };
        let mut request = request_to(method, &body);
        if input.flag() {
            in_session(&mut request, &session);
        }
        for _ in 0..input.below(4) {
            let name = NAMES[input.below(NAMES.len())].clone();
            let replaces = input.flag();
            let Ok(value) = HeaderValue::from_bytes(input.line()) else { continue };
            if replaces {
                request.headers_mut().insert(name, value);
            } else {
                request.headers_mut().append(name, value);
            }
        }
        site.send(request).await;
    }
}

/// Headers that mirror the body, and one that says something else.
async fn mirrored_headers(site: &mut Site, input: &mut Input<'_>) {
    let (region, other) = (input.text(), input.text());
    let params = json!({ "name": "one", "arguments": { "region": region } });
    let header = |value: &str| [("mcp-param-region", mirrored(value))];
    let answer = site.post("tools/call", Some("one"), &header(&region), params.clone()).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", String::from_utf8_lossy(&answer.body));
    assert!(answer.json()["result"]["content"].is_array());
    if other != region {
        let answer = site.post("tools/call", Some("one"), &header(&other), params.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{other:?} passes for {region:?}");
        assert_eq!(answer.json()["error"]["code"], code::HEADER_MISMATCH);
    }
    // The raw text of a header means what it says, or what its base64 says.
    let Ok(raw) = HeaderValue::from_str(&other) else { return };
    let text = raw.to_str().unwrap_or_default().trim();
    let coded = text.strip_prefix("=?base64?").and_then(|text| text.strip_suffix("?="));
    let meant = match coded {
        Some(coded) => STANDARD.decode(coded).ok().and_then(|bytes| String::from_utf8(bytes).ok()),
        None => Some(text.to_owned()),
    };
    if raw.to_str().is_ok() {
        let headers = [("mcp-param-region", other.clone())];
        let answer = site.post("tools/call", Some("one"), &headers, params).await;
        let accepted = meant.as_deref() == Some(&*region);
        assert_eq!(answer.status == StatusCode::OK, accepted, "{other:?} for {region:?}");
    }
}

/// Resuming behind any text.
async fn event_ids(site: &mut Site, input: &mut Input<'_>) {
    let session = site.open().await;
    let id = input.line();
    let Ok(value) = HeaderValue::from_bytes(id) else { return };
    let mut request = request_to("GET", "");
    in_session(&mut request, &session);
    request.headers_mut().insert("last-event-id", value);
    let answer = site.send(request).await;
    let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let id = id.trim_ascii();
    let well_formed = id
        .iter()
        .position(|byte| *byte == b'.')
        .is_some_and(|dot| digits(&id[..dot]) && digits(&id[dot + 1..]));
    // The stream of what belongs to no request is there from the beginning, and has no event yet.
    let beginning = well_formed && id.iter().all(|byte| matches!(byte, b'0' | b'.'));
    let expected = if beginning { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    assert_eq!(answer.status, expected, "{}", id.escape_ascii());
}

/// The cursors of a list, and texts that are none.
async fn cursors(site: &mut Site, input: &mut Input<'_>) {
    let first = site.post("tools/list", None, &[], json!({})).await.json();
    let cursor = first["result"]["nextCursor"].as_str().expect("more than one page").to_owned();
    let changed = match input.below(3) {
        0 => input.text(),
        1 => cursor[..input.below(cursor.len())].to_owned(),
        _ => {
            let mut bytes = cursor.clone().into_bytes();
            let at = input.below(bytes.len());
            bytes[at] = input.byte();
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    let second = site.post("tools/list", None, &[], json!({ "cursor": cursor })).await.json();
    assert_eq!(second["result"]["tools"][0]["name"], "two", "{second}");
    if changed != cursor {
        let refused = site.post("tools/list", None, &[], json!({ "cursor": changed })).await.json();
        assert_eq!(refused["error"]["code"], code::INVALID_PARAMS, "{changed}: {refused}");
    }
}
