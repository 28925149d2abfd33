//! Whatever servers answer and browsers bring, a flow ends, and soon.

use bytes::Bytes;
use http::Response;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fetch::Unfetched;

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

fn answer() -> impl Strategy<Value = Result<Response<Bytes>, Unfetched>> {
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
    prop_oneof![20 => good, 1 => Just(Err(Unfetched::TooSlow))]
}

fn end(mut flow: Flow, mut next: Next, answers: &[Result<Response<Bytes>, Unfetched>], back: &str) -> usize {
    let mut answers = answers.iter().cycle();
    let mut moves = 0;
    loop {
        moves += 1;
        assert!(moves < 100, "the flow does not end");
        for step in flow.steps() {
            assert!(step.to_string().len() < 6000);
        }
        next = match next {
            Next::Fetch(request) => {
                let host = request.uri().host().unwrap_or_default();
                assert!(request.uri().scheme_str() == Some("https") || host.contains("127.0.0.1"));
                flow.fetched(answers.next().unwrap().clone(), NOW)
            }
            Next::Save(_) => flow.saved(NOW),
            Next::Browse(url) => {
                let (_, state) = url.query_pairs().find(|(name, _)| name == "state").unwrap();
                let mut redirect = super::url(REDIRECT);
                redirect.set_query(Some(&format!("{back}&state={state}")));
                flow.returned(&redirect, NOW)
            }
            Next::Done(_) | Next::Failed(_) => return moves,
        };
    }
}

proptest! {
    #[test]
    fn a_flow_ends_whatever_comes(
        answers in prop::collection::vec(answer(), 1..12),
        back in prop_oneof![Just("code=c&iss=https://as.example".to_owned()), "[a-z=&%0-9]{0,40}"],
        challenge in prop_oneof![Just(format!("Bearer resource_metadata=\"{PATH_METADATA}\"")), ".{0,60}"],
        proofs in prop::sample::select(vec![Proofs::Never, Proofs::WhenAsked, Proofs::Always]),
    ) {
        let (flow, next) = Flow::begin(Wanted { proofs, ..challenged(&challenge) }, Known::default(), NOW);
        end(flow, next, &answers, &back);
    }

    #[test]
    fn a_flow_that_went_well_so_far_ends_whatever_comes_then(
        answers in prop::collection::vec(answer(), 1..6),
        good in 1_usize..5,
    ) {
        let all = [resource(), server(), json!({ "client_id": "c" }), tokens()];
        let good = all.iter().take(good).map(|body| Ok(Response::new(Bytes::from(body.to_string()))));
        let answers: Vec<_> = good.chain(answers).collect();
        let (flow, next) = Flow::begin(wanted(), Known::default(), NOW);
        end(flow, next, &answers, "code=c&iss=https://as.example");
    }
}

#[test]
fn challenges_of_any_size_are_read_and_left() {
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
    let refusal = Refusal::read(http::StatusCode::UNAUTHORIZED, &headers);
    assert_eq!((refusal.get("scope"), refusal.get("resource_metadata")), (Some("a"), Some(PATH_METADATA)));
    let mut world = world();
    world.run(Wanted { refusal: Some(refusal), ..wanted() }).unwrap();
    assert_eq!(world.parameter("scope").as_deref(), Some("a"));
}

/// Names, scopes and codes of others are one value each, of whatever they are made.
#[test]
fn what_others_name_stays_in_its_parameter() {
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
        let mut world = world();
        world.json("https://as.example/register", &json!({ "client_id": value }));
        world.back = vec![("code", value.to_owned()), ("iss", ISSUER.to_owned())];
        let scope = value.replace('\\', "!");
        let grant = world.run(challenged(&format!("Bearer scope=\"{scope}\""))).unwrap();
        assert_eq!(grant.client_id.as_deref(), Some(value));
        let page = &world.browsed[0];
        assert!(page.as_str().starts_with("https://as.example/authorize?response_type=code&"), "{page}");
        assert_eq!(page.fragment(), None);
        for (name, wanted) in [
            ("client_id", value),
            ("scope", &scope),
            ("redirect_uri", REDIRECT),
            ("resource", SERVER),
            ("code_challenge_method", "S256"),
        ] {
            let found = page.query_pairs().filter(|(known, _)| known == name).map(|(_, value)| value);
            assert_eq!(found.collect::<Vec<_>>(), [wanted], "{name} of {page}");
        }
        let asked = world.last_to("https://as.example/token");
        assert_eq!(asked.field("code").as_deref(), Some(value));
        assert_eq!(asked.field("redirect_uri").as_deref(), Some(REDIRECT));
    }
}

/// What cannot be written into a request as it is, is refused before anybody is sent out with it.
#[test]
fn names_with_characters_that_control_something_are_not_taken() {
    for value in ["a\0b", "a\r\nb", "\u{7f}"] {
        let mut world = world();
        world.json("https://as.example/register", &json!({ "client_id": value }));
        assert!(world.run(wanted()).is_err(), "{value:?}");
        assert!(world.browsed.is_empty(), "{value:?}");
    }
}
