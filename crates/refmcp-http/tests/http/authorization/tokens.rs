//! Verification of tokens, by a table of invalid ones.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use refmcp_auth::jose::{Header, PrivateKey};
use ring::hmac;
use serde_json::{Value, json};

use super::fake_issuers::{Issuers, OTHER_ISSUER, now};
use super::{Guarded, challenge};

async fn refused(guarded: &Guarded, what: &str, token: &str) {
    let reply = guarded.ask(&[("Authorization", &format!("Bearer {token}"))]).await;
    assert_eq!(reply.status, 401, "{what}");
    let challenge = challenge(&reply);
    assert_eq!(challenge.get("error"), Some("invalid_token"), "{what}");
    let why = challenge.get("error_description").expect(what);
    assert!(why.len() < 200 && (token.len() < 10 || !why.contains(token)), "{what}: {why}");
    assert_eq!(challenge.get("resource_metadata"), Some(&*guarded.document("/mcp")), "{what}");
}

#[tokio::test]
async fn a_valid_token_is_accepted() {
    let guarded = Guarded::open().await;
    let host = guarded.site.address;
    let slash = format!("http://{host}/mcp/ws");
    let sse = format!("http://{host}/sse");
    let by_name = format!("http://localhost:{}/mcp", host.port());
    for changes in [
        json!({}),
        json!({ "iss": OTHER_ISSUER }),
        json!({ "aud": [guarded.resource()] }),
        json!({ "aud": slash }),
        json!({ "aud": sse }),
        json!({ "aud": by_name }),
        json!({ "exp": now() - 50 }),
        json!({ "nbf": now() + 50 }),
    ] {
        let bearer = guarded.bearer(changes.clone());
        assert_eq!(guarded.ask(&[("Authorization", &bearer)]).await.status, 200, "{changes}");
        // The same by the name of the scheme in other letters.
        let other = bearer.replacen("Bearer", "bearer", 1);
        assert_eq!(guarded.ask(&[("Authorization", &other)]).await.status, 200, "{changes}");
    }
}

#[tokio::test]
async fn every_claim_is_checked() {
    let guarded = Guarded::open().await;
    let resource = guarded.resource();
    for changes in [
        json!({ "iss": "https://evil.example" }),
        json!({ "iss": "https://issuer.example/" }),
        json!({ "iss": null }),
        json!({ "aud": "https://elsewhere.example/mcp" }),
        json!({ "aud": format!("{resource}/") }),
        json!({ "aud": resource.replace("/mcp", "") }),
        json!({ "aud": [resource, "https://elsewhere.example"] }),
        json!({ "aud": [] }),
        json!({ "aud": null }),
        json!({ "exp": now() - 61 }),
        json!({ "exp": null }),
        json!({ "exp": "tomorrow" }),
        json!({ "nbf": now() + 90 }),
        json!({ "iat": now() + 90 }),
        json!({ "sub": null }),
    ] {
        refused(&guarded, &changes.to_string(), &guarded.token(changes.clone())).await;
    }
    let elsewhere = guarded.token(json!({ "iss": OTHER_ISSUER, "aud": "https://elsewhere.example" }));
    refused(&guarded, "of the other issuer for another audience", &elsewhere).await;
}

#[tokio::test]
async fn tokens_do_not_choose_their_verification() {
    let began = Instant::now();
    let guarded = Guarded::open().await;
    let good = guarded.token(json!({}));
    let parts: Vec<&str> = good.split('.').collect();
    let public = guarded.issuers.public();
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    // Signed with the public key as an HMAC secret.
    let secrets = [
        serde_json::to_vec(&public).unwrap(),
        URL_SAFE_NO_PAD.decode(public.x.as_ref().unwrap()).unwrap(),
        Vec::new(),
    ];
    for secret in secrets {
        let message = format!("{}.{}", encoded(&json!({ "alg": "HS256", "typ": "at+jwt" })), parts[1]);
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), message.as_bytes());
        let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag));
        refused(&guarded, "HS256", &token).await;
    }
    for header in [
        json!({ "alg": "none" }),
        json!({ "alg": "None" }),
        json!({ "alg": "" }),
        json!({ "alg": "RS256" }),
        json!({ "alg": "PS256", "kid": "one" }),
        json!({ "alg": "ES384" }),
        json!({ "alg": "EdDSA" }),
        json!({ "alg": ["ES256"] }),
        json!({ "alg": "ES256", "crit": ["b64"], "b64": false }),
        json!({ "alg": "ES256", "kid": 1 }),
    ] {
        for signature in ["", parts[2]] {
            let token = format!("{}.{}.{signature}", encoded(&header), parts[1]);
            let reply = guarded.ask(&[("Authorization", &format!("Bearer {token}"))]).await;
            assert_eq!(reply.status, 401, "{header}");
        }
    }
    // By a key in its own header, or at a URL that it names.
    let stranger = PrivateKey::generate().unwrap();
    let claims = Issuers::claims(&guarded.resource(), json!({}));
    for kid in
        ["one", "two", "../../../../dev/null", "/dev/null", "' OR 1=1 --", "https://evil.example/jwks", ""]
    {
        let header =
            Header { kid: Some(kid.into()), jwk: Some(stranger.public()), ..Header::of_type("at+jwt") };
        refused(&guarded, kid, &stranger.sign(header, &claims).unwrap()).await;
    }
    let own = Header { kid: Some("../one".into()), ..Header::of_type("at+jwt") };
    refused(&guarded, "of a key that is not known", &guarded.issuers.token_under(own, &guarded.resource()))
        .await;
    for typ in ["JWS", "dpop+jwt", "id_token", "logout+jwt"] {
        let header = Header { kid: Some("one".into()), ..Header::of_type(typ) };
        refused(&guarded, typ, &guarded.issuers.token_under(header, &guarded.resource())).await;
    }
    let forged =
        format!("{}.{}.{}", parts[0], encoded(&json!({ "iss": "https://issuer.example" })), parts[2]);
    refused(&guarded, "changed", &forged).await;
    for nonsense in ["a", "a.b", "a.b.c", "..", "a.b.c.d", &"a".repeat(20_000)] {
        refused(&guarded, &nonsense[..nonsense.len().min(9)], nonsense).await;
    }
    let most = 2 + began.elapsed().as_secs() / 2;
    assert!(
        guarded.issuers.fetches("jwks") as u64 <= most,
        "made-up key ids do not cause fetches without end"
    );
    assert_eq!(guarded.ask(&[("Authorization", &format!("Bearer {good}"))]).await.status, 200);
}

#[tokio::test]
async fn keys_of_one_issuer_sign_nothing_for_another() {
    let guarded = Guarded::open().await;
    let claims = Issuers::claims(&guarded.resource(), json!({ "iss": OTHER_ISSUER }));
    let header = Header { kid: Some("one".into()), ..Header::of_type("at+jwt") };
    let mine = guarded.issuers.token_under(header, &guarded.resource());
    let parts: Vec<&str> = mine.split('.').collect();
    let forged = format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode(claims.to_string()), parts[2]);
    refused(&guarded, "of the other", &forged).await;
}
