//! Signed tokens: whatever is done to a token, only the one that was signed is accepted, in exactly its spelling.

use std::sync::LazyLock;

use refmcp_auth::jose::{Algorithm, Header, Jwk, Jwks, Jws, PrivateKey};
use serde_json::{Value, json};

/// A key, and the only token that it has signed. Ed25519 signs without randomness, so both are the same in every run.
struct Signed {
    keys: Jwks,
    token: String,
}

static SIGNED: LazyLock<Signed> = LazyLock::new(|| {
    // An Ed25519 key in PKCS #8: the prefix of RFC 8410, and a seed.
    let prefix = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let key = PrivateKey::from_pkcs8(Algorithm::EdDsa, &[&prefix[..], &[9; 32]].concat()).expect("a key");
    let claims =
        json!({ "iss": "https://issuer", "aud": "https://server/mcp", "sub": "me", "exp": 2_000_000_000 });
    let token = key.sign(Header::of_type("at+jwt"), &claims).expect("a token");
    let rsa = Jwk { kty: "RSA".into(), n: Some("AQAB".into()), e: Some("AQAB".into()), ..Jwk::default() };
    Signed { keys: Jwks { keys: vec![key.public(), rsa] }, token }
});

/// The bytes are a token. A first byte of 0 stands for the signed token, with the second byte put at the third's place.
pub fn run(bytes: &[u8]) {
    let Signed { keys, token: signed } = &*SIGNED;
    let token = match bytes {
        [0, change, at, ..] => {
            let mut token = signed.clone().into_bytes();
            let at = usize::from(*at) % token.len();
            token[at] = *change;
            String::from_utf8_lossy(&token).into_owned()
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    let Ok(jws) = Jws::parse(&token) else {
        assert_ne!(token, *signed, "the signed token is refused");
        return;
    };
    assert!(jws.header().crit.is_none(), "a critical extension is ignored");
    assert_eq!(jws.header().alg, jws.algorithm().name());
    let verified = jws.verify::<Value>(keys, &Algorithm::ALL);
    assert_eq!(verified.is_ok(), token == *signed, "{token}: {verified:?}");
    // The key that a token brings along is no reason to accept it.
    if let Some(own) = &jws.header().jwk {
        let _: bool = jws.is_signed_with(own);
    }
    let shown = format!("{jws:?}");
    assert!(!shown.contains("signature") && !shown.contains("claims"), "{shown}");
}
