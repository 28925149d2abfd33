//! The authorization flow of a client among hostile servers: it ends, sends secrets by POST alone, over TLS or to this
//! machine, and never in a URI.

use axum::body::Bytes;
use axum::http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use refmcp_auth::client::{
    ClientIdentity, DpopPolicy, Flow, FlowAction, FlowRequest, GrantKind, PreRegistered, StoredState,
    UnauthorizedResponse,
};
use refmcp_auth::metadata::ClientMetadata;
use refmcp_auth::{Challenge, Secret};
use url::Url;

use crate::input::Input;

const SERVER: &str = "https://mcp.example/mcp";
const ISSUER: &str = "https://as.example";
const REDIRECT: &str = "http://127.0.0.1:7777/callback";
const SECRET: &str = "hush-client-secret";
const NOW: u64 = 1_000_000;

/// Actions of one flow; a flow makes at most 40 requests, and stores something after few of them.
const MAX_ACTIONS: usize = 120;

/// Settings, the challenge of the server, and then a line for each response: a status, and a body or a `Location`.
pub fn run(bytes: &[u8]) {
    // What a server knows is no secret; a fuzzer can guess it.
    if bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()) {
        return;
    }
    let mut input = Input::new(bytes);
    let (mut flow, mut action) = Flow::start(request(&mut input), StoredState::default(), NOW);
    for _ in 0..MAX_ACTIONS {
        for step in flow.take_steps() {
            assert!(!step.to_string().contains(SECRET), "{step}");
        }
        assert!(!format!("{action:?}").contains(SECRET), "{action:?}");
        action = match action {
            FlowAction::Fetch(request) => {
                check(&request);
                flow.on_response(Ok(response(&mut input, request.uri())), NOW)
            }
            FlowAction::Store(_) => flow.on_stored(NOW),
            FlowAction::OpenBrowser(url) => {
                assert!(matches!(url.scheme(), "https" | "http"), "{url}");
                flow.on_redirect(&redirect(&mut input, &url), NOW)
            }
            FlowAction::Done(tokens) => {
                assert!(!tokens.issuer.is_empty());
                return;
            }
            FlowAction::Failed(error) => {
                assert!(!error.to_string().contains(SECRET), "{error}");
                return;
            }
        };
    }
    panic!("the flow does not end: {action:?}");
}

fn request(input: &mut Input<'_>) -> FlowRequest {
    let grant_kind = match input.below(2) {
        0 => GrantKind::AuthorizationCode { redirect_uri: Url::parse(REDIRECT).expect("a URL") },
        _ => GrantKind::ClientCredentials,
    };
    let identity = match input.below(3) {
        0 => ClientIdentity { dynamic: Some(ClientMetadata::default()), ..ClientIdentity::default() },
        _ => {
            let client = PreRegistered::new("client", Some(Secret::new(SECRET)));
            let client = PreRegistered { issuer: Some(ISSUER.to_owned()), ..client };
            ClientIdentity { registered: Some(client), ..ClientIdentity::default() }
        }
    };
    let dpop = input.pick(&[DpopPolicy::WhenRequired, DpopPolicy::Never, DpopPolicy::Always]);
    let legacy_discovery = input.flag();
    let challenge = input.text();
    let challenges = Challenge::parse_all(&challenge);
    let response = UnauthorizedResponse { status: StatusCode::UNAUTHORIZED, challenges };
    let challenge = (!challenge.is_empty()).then_some(response);
    let server = Url::parse(SERVER).expect("a URL");
    FlowRequest { challenge, dpop, legacy_discovery, ..FlowRequest::new(server, grant_kind, identity) }
}

/// A secret goes to the issuer that the client is registered with, and nowhere else; nothing goes in the clear.
fn check(request: &Request<Bytes>) {
    let uri = request.uri();
    let host = uri.host().unwrap_or_default();
    let local = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
    assert!(uri.scheme_str() == Some("https") || local, "a request in the clear to {uri}");
    let body = String::from_utf8_lossy(request.body());
    let basic = request.headers().get(header::AUTHORIZATION).is_some();
    assert!(!uri.to_string().contains(SECRET), "a secret in a URI");
    if body.contains(SECRET) || basic {
        assert!(request.method() == "POST", "a secret with {}", request.method());
    }
}

fn response(input: &mut Input<'_>, to: &Uri) -> Response<Bytes> {
    let kind = input.byte();
    let line = input.line();
    // Most inputs would never come far; a server that works is one byte.
    let body = if line.is_empty() { usual(to) } else { line.to_vec() };
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = match kind % 8 {
        0..=3 => StatusCode::OK,
        4 => StatusCode::NOT_FOUND,
        5 => StatusCode::BAD_REQUEST,
        6 => StatusCode::FOUND,
        _ => StatusCode::CREATED,
    };
    if (response.status().is_redirection() || kind & 16 != 0)
        && let Ok(value) = HeaderValue::from_bytes(line)
    {
        response.headers_mut().insert(header::LOCATION, value.clone());
        response.headers_mut().insert("dpop-nonce", value);
    }
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What servers without a fault respond.
fn usual(to: &Uri) -> Vec<u8> {
    let path = to.path();
    let document = if path.contains("oauth-protected-resource") {
        serde_json::json!({ "resource": SERVER, "authorization_servers": [ISSUER] })
    } else if path.contains(".well-known") {
        serde_json::json!({
            "issuer": ISSUER,
            "authorization_endpoint": "https://as.example/authorize",
            "token_endpoint": "https://as.example/token",
            "registration_endpoint": "https://as.example/register",
            "code_challenge_methods_supported": ["S256"],
            "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": true,
        })
    } else if path == "/register" {
        serde_json::json!({ "client_id": "dynamic" })
    } else {
        serde_json::json!({ "access_token": "hush-token", "token_type": "Bearer", "expires_in": 3600 })
    };
    document.to_string().into_bytes()
}

fn redirect(input: &mut Input<'_>, opened: &Url) -> Url {
    let line = input.text();
    let state = opened.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned());
    let mut redirect = Url::parse(REDIRECT).expect("a URL");
    if line.is_empty() {
        let state = state.unwrap_or_default();
        redirect.query_pairs_mut().extend_pairs([("code", "c"), ("state", &state), ("iss", ISSUER)]);
    } else {
        redirect.set_query(Some(&line));
    }
    redirect
}
