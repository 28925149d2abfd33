//! Whatever servers answer and browsers bring, a flow ends, and soon.

use bytes::Bytes;
use http::Response;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fetch::FetchError;

/// Pieces that documents of all kinds are made of, good and bad.
fn body() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "resource",
        "authorization_servers",
        "issuer",
        "authorization_endpoint",
        "token_endpoint",
        "registration_endpoint",
        "code_challenge_methods_supported",
        "scopes_supported",
        "client_id",
        "client_secret",
        "client_secret_expires_at",
        "redirect_uris",
        "access_token",
        "token_type",
        "expires_in",
        "refresh_token",
        "error",
        "error_description",
    ]);
    let value = prop_oneof![
        prop::sample::select(vec![
            json!(SERVER),
            json!(ISSUER),
            json!([ISSUER]),
            json!(["S256"]),
            json!("https://as.example/token"),
            json!("Bearer"),
            json!("invalid_client"),
            json!("use_dpop_nonce"),
            json!([REDIRECT]),
            json!(null),
            json!({}),
            json!(-1),
            json!(u64::MAX),
            json!(1e300),
        ]),
        ".{0,40}".prop_map(Value::from),
    ];
    let object = prop::collection::vec((name, value), 0..8).prop_map(|members| {
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Value>()
    });
    prop_oneof![
        2 => Just(resource().to_string()),
        2 => Just(server().to_string()),
        1 => Just(json!({ "client_id": "c" }).to_string()),
        1 => Just(tokens().to_string()),
        4 => (object, prop::sample::select(vec![resource(), server(), tokens(), json!({})]))
            .prop_map(|(changes, base)| with(base, &changes).to_string()),
        1 => ".{0,60}",
    ]
}

fn answer() -> impl Strategy<Value = Result<Response<Bytes>, FetchError>> {
    let status = prop::sample::select(vec![200_u16, 200, 200, 200, 201, 204, 302, 400, 401, 404, 429, 500]);
    let place = prop::sample::select(vec!["/", "/x", "https://evil.example/", "http://[", "\u{7f}"]);
    let good = (status, place, body()).prop_map(|(status, place, body)| {
        let response = Response::builder().status(status).header("dpop-nonce", "n");
        let response = match http::HeaderValue::from_str(place) {
            Ok(place) => response.header("location", place),
            Err(_) => response,
        };
        Ok(response.body(Bytes::from(body)).unwrap())
    });
    prop_oneof![20 => good, 1 => Just(Err(FetchError::TimedOut))]
}

fn end(
    mut flow: Flow,
    mut next: FlowAction,
    answers: &[Result<Response<Bytes>, FetchError>],
    back: &str,
) -> usize {
    let mut answers = answers.iter().cycle();
    let mut moves = 0;
    loop {
        moves += 1;
        assert!(moves < 100, "the flow does not end");
        for step in flow.take_steps() {
            assert!(step.to_string().len() < 6000);
        }
        next = match next {
            FlowAction::Fetch(request) => {
                let host = request.uri().host().unwrap_or_default();
                assert!(request.uri().scheme_str() == Some("https") || host.contains("127.0.0.1"));
                flow.on_response(answers.next().unwrap().clone(), NOW)
            }
            FlowAction::Store(_) => flow.on_stored(NOW),
            FlowAction::OpenBrowser(url) => {
                let (_, state) = url.query_pairs().find(|(name, _)| name == "state").unwrap();
                let mut redirect = super::url(REDIRECT);
                redirect.set_query(Some(&format!("{back}&state={state}")));
                flow.on_redirect(&redirect, NOW)
            }
            FlowAction::Done(_) | FlowAction::Failed(_) => return moves,
        };
    }
}

proptest! {
    #[test]
    fn a_flow_ends_whatever_the_responses_are(
        answers in prop::collection::vec(answer(), 1..12),
        back in prop_oneof![Just("code=c&iss=https://as.example".to_owned()), "[a-z=&%0-9]{0,40}"],
        challenge in prop_oneof![Just(format!("Bearer resource_metadata=\"{PATH_METADATA}\"")), ".{0,60}"],
        dpop in prop::sample::select(vec![DpopPolicy::Never, DpopPolicy::WhenRequired, DpopPolicy::Always]),
    ) {
        let (flow, next) = Flow::start(FlowRequest { dpop, ..challenged(&challenge) }, StoredState::default(), NOW);
        end(flow, next, &answers, &back);
    }

    #[test]
    fn a_flow_ends_whatever_its_later_responses_are(
        answers in prop::collection::vec(answer(), 1..6),
        good in 1_usize..5,
    ) {
        let all = [resource(), server(), json!({ "client_id": "c" }), tokens()];
        let good = all.iter().take(good).map(|body| Ok(Response::new(Bytes::from(body.to_string()))));
        let answers: Vec<_> = good.chain(answers).collect();
        let (flow, next) = Flow::start(flow_request(), StoredState::default(), NOW);
        end(flow, next, &answers, "code=c&iss=https://as.example");
    }
}

#[test]
fn oversized_challenges_are_ignored() {
    let mut headers = http::HeaderMap::new();
    for text in [
        format!("Bearer resource_metadata=\"{}", "a".repeat(100 << 10)),
        "Bearer a=\"b".to_owned(),
        "Basic realm=\"x\", Negotiate abc==, Digest a=b".to_owned(),
        "Scheme, ".repeat(2000),
        format!("Bearer scope=\"a\", resource_metadata=\"{PATH_METADATA}\""),
    ] {
        headers.append("www-authenticate", text.parse().unwrap());
    }
    let refusal = UnauthorizedResponse::read(http::StatusCode::UNAUTHORIZED, &headers);
    assert_eq!((refusal.get("scope"), refusal.get("resource_metadata")), (Some("a"), Some(PATH_METADATA)));
    let mut servers = servers();
    servers.run(FlowRequest { challenge: Some(refusal), ..flow_request() }).unwrap();
    assert_eq!(servers.parameter("scope").as_deref(), Some("a"));
}

/// Names, scopes and codes of others are one value each, of whatever they are made.
#[test]
fn remote_values_stay_in_their_query_parameter() {
    for value in [
        "../x",
        "%2e%2e/",
        "//evil.example",
        "a?b=c",
        "a#f",
        "a\\b",
        "a%00b",
        "a&redirect_uri=https://evil.example",
        "a=b;c",
        "a+b%20c",
    ] {
        let mut servers = servers();
        servers.json("https://as.example/register", &json!({ "client_id": value }));
        servers.back = vec![("code", value.to_owned()), ("iss", ISSUER.to_owned())];
        let scope = value.replace('\\', "!");
        let grant = servers.run(challenged(&format!("Bearer scope=\"{scope}\""))).unwrap();
        assert_eq!(grant.client_id.as_deref(), Some(value));
        let page = &servers.browsed[0];
        assert!(page.as_str().starts_with("https://as.example/authorize?response_type=code&"), "{page}");
        assert_eq!(page.fragment(), None);
        for (name, flow_request) in [
            ("client_id", value),
            ("scope", &scope),
            ("redirect_uri", REDIRECT),
            ("resource", SERVER),
            ("code_challenge_method", "S256"),
        ] {
            let found = page.query_pairs().filter(|(known, _)| known == name).map(|(_, value)| value);
            assert_eq!(found.collect::<Vec<_>>(), [flow_request], "{name} of {page}");
        }
        let asked = servers.last_to("https://as.example/token");
        assert_eq!(asked.field("code").as_deref(), Some(value));
        assert_eq!(asked.field("redirect_uri").as_deref(), Some(REDIRECT));
    }
}

/// Values that cannot be written into a request are refused before the browser is opened.
#[test]
fn control_characters_in_names_are_refused() {
    for value in ["a\0b", "a\r\nb", "\u{7f}"] {
        let mut servers = servers();
        servers.json("https://as.example/register", &json!({ "client_id": value }));
        assert!(servers.run(flow_request()).is_err(), "{value:?}");
        assert!(servers.browsed.is_empty(), "{value:?}");
    }
}
