//! Headers and spellings: the token chooses neither its algorithm nor its key, and has one spelling.

use refmcp_auth::jose::{Header, Jwk, JwsError, PrivateKey};
use serde_json::json;

use super::{encode, signature_of, token, verify};

const CLAIMS: &str = r#"{"sub":"me"}"#;

/// A token of a fresh ES256 key, and its public key with the id `one`.
fn signed() -> (String, Jwk) {
    let key = PrivateKey::generate().unwrap();
    let token = key.sign(Header::default(), &json!({ "sub": "me" })).unwrap();
    (token, Jwk { kid: Some("one".into()), ..key.public() })
}

#[test]
fn the_token_itself_is_accepted() {
    let (token, key) = signed();
    assert_eq!(verify(&token, &[key]).unwrap(), json!({ "sub": "me" }));
}

#[test]
fn a_header_cannot_choose_its_algorithm() {
    let (signed, key) = signed();
    let signature = signature_of(&signed);
    // What an HMAC would be keyed with is public: the key itself.
    let symmetric = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &serde_json::to_vec(&key).unwrap());
    for alg in
        ["none", "None", "NONE", "", "HS256", "HS384", "HS512", "es256", "ES256K", "ES512", "RS1", "RS512"]
    {
        let header = format!(r#"{{"alg":"{alg}"}}"#);
        let message = format!("{}.{}", encode(&header), encode(CLAIMS));
        let mac = ring::hmac::sign(&symmetric, message.as_bytes());
        for signature in [&[][..], &signature, mac.as_ref()] {
            let refused = verify(&token(&header, CLAIMS, signature), std::slice::from_ref(&key));
            assert_eq!(refused, Err(JwsError::Algorithm), "{alg}");
        }
    }
}

#[test]
fn an_algorithm_of_another_kind_of_key_finds_no_key() {
    let (signed, key) = signed();
    for alg in ["ES384", "EdDSA", "RS256", "PS256"] {
        let forged = token(&format!(r#"{{"alg":"{alg}"}}"#), CLAIMS, &signature_of(&signed));
        assert_eq!(verify(&forged, std::slice::from_ref(&key)), Err(JwsError::UnknownKey), "{alg}");
    }
}

#[test]
fn keys_are_used_for_what_they_say() {
    let (token, key) = signed();
    for (unfit, why) in [
        (Jwk { used_for: Some("enc".into()), ..key.clone() }, "use"),
        (Jwk { alg: Some("ES384".into()), ..key.clone() }, "alg"),
        (Jwk { alg: Some("none".into()), ..key.clone() }, "alg none"),
        (Jwk { kty: "RSA".into(), ..key.clone() }, "kty"),
        (Jwk { kty: "oct".into(), ..key.clone() }, "oct"),
        (Jwk { crv: Some("P-384".into()), ..key.clone() }, "crv"),
        (Jwk { crv: None, ..key.clone() }, "no crv"),
    ] {
        assert_eq!(verify(&token, &[unfit]), Err(JwsError::UnknownKey), "{why}");
    }
    let other = Jwk { kid: Some("two".into()), ..signed().1 };
    assert_eq!(
        verify(&token, std::slice::from_ref(&other)),
        Err(JwsError::Signature),
        "a key of another issuer"
    );
    assert!(verify(&token, &[other, key]).is_ok(), "one of two keys");
}

#[test]
fn a_key_id_selects_the_key() {
    let key = PrivateKey::generate().unwrap();
    let header = Header { kid: Some("one".into()), ..Header::default() };
    let token = key.sign(header, &json!({})).unwrap();
    let named = |kid: Option<&str>| Jwk { kid: kid.map(str::to_owned), ..key.public() };
    assert!(verify(&token, &[named(Some("one"))]).is_ok());
    assert!(verify(&token, &[named(None)]).is_ok(), "a key without an id may be it");
    assert_eq!(verify(&token, &[named(Some("two"))]), Err(JwsError::UnknownKey));
}

#[test]
fn a_key_in_the_header_is_not_trusted() {
    let (thief, (_, key)) = (PrivateKey::generate().unwrap(), signed());
    let header = Header { jwk: Some(thief.public()), kid: Some("one".into()), ..Header::default() };
    let token = thief.sign(header, &json!({ "sub": "me" })).unwrap();
    assert_eq!(verify(&token, &[key]), Err(JwsError::Signature));
}

#[test]
fn headers_that_are_refused() {
    let (signed, key) = signed();
    for header in [
        r#"{"alg":"ES256","crit":["b64"],"b64":false}"#,
        r#"{"alg":"ES256","crit":["exp"],"exp":1}"#,
        r#"{"alg":"ES256","crit":[]}"#,
        r#"{"alg":"ES256","crit":null}"#,
        r#"{"alg":"ES256","crit":"b64"}"#,
        r#"{"alg":"none","alg":"ES256"}"#,
        r#"{"alg":"ES256","\u0061lg":"none"}"#,
        r#"{"alg":"ES256","kid":"two","kid":"one"}"#,
        r#"{"alg":["ES256"]}"#,
        r#"{"alg":null}"#,
        r#"{"typ":"JWT"}"#,
        r#"["ES256"]"#,
        r#""ES256""#,
        r#"{"alg":"ES256"} {}"#,
        r#"{"alg":"ES256""#,
        "",
    ] {
        let forged = token(header, CLAIMS, &signature_of(&signed));
        assert_eq!(verify(&forged, std::slice::from_ref(&key)), Err(JwsError::Malformed), "{header}");
    }
    let deep = format!(r#"{{"alg":"ES256","x":{}{}}}"#, "[".repeat(3000), "]".repeat(3000));
    assert!(verify(&token(&deep, CLAIMS, b""), &[key]).is_err(), "nesting without end");
}

#[test]
fn claims_are_an_object() {
    let key = PrivateKey::generate().unwrap();
    for claims in [json!(["me"]), json!("me"), json!(null), json!(7)] {
        let token = key.sign(Header::default(), &claims).unwrap();
        assert_eq!(verify(&token, &[key.public()]), Err(JwsError::Malformed), "{claims}");
    }
}

#[test]
fn a_token_has_one_spelling() {
    let (signed, key) = signed();
    let parts: Vec<&str> = signed.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("{signed}") };
    // The last of 86 characters has two bits that mean nothing; all but one of their values are other spellings.
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let last = alphabet.find(&signature[85..]).unwrap();
    let loose = &alphabet[last | 1..=last | 1];
    for (spelling, what) in [
        (format!("{header}.{claims}.{}{loose}", &signature[..85]), "bits that mean nothing"),
        (format!("{header}.{claims}.{signature}=="), "padding"),
        (format!("{header}=.{claims}.{signature}"), "padding of the header"),
        (format!("{header}.{claims}.{signature}A"), "one character more"),
        (format!("{header}.{claims}.{}", &signature[..85]), "one character less"),
        (format!(" {signed}"), "a space before it"),
        (format!("{signed}\n"), "a line break behind it"),
        (format!("{header}.\n{claims}.{signature}"), "a line break in it"),
        (format!("{header}.{claims}.{signature}."), "a part more"),
        (format!("{header}.{claims}.{signature}.{signature}.{signature}"), "five parts"),
        (format!("{header}.{claims}"), "a part less"),
        (format!("{header}..{signature}"), "no claims"),
        (format!(".{claims}.{signature}"), "no header"),
        (format!("{header}.{claims}."), "no signature"),
        (signed.replacen('e', "\u{435}", 1), "a letter of another alphabet"),
        (signed.to_uppercase(), "upper case"),
        (format!(r#"{{"payload":"{claims}","protected":"{header}","signature":"{signature}"}}"#), "JSON"),
    ] {
        assert!(verify(&spelling, std::slice::from_ref(&key)).is_err(), "{what}");
    }
    let standard =
        token(r#"{"alg":"ES256"}"#, r#"{"sub":"???>>>"}"#, &[0xff; 64]).replace('_', "/").replace('-', "+");
    assert_eq!(verify(&standard, &[key]), Err(JwsError::Malformed), "the alphabet of other base64");
}

#[test]
fn a_token_has_a_limited_size() {
    let key = PrivateKey::generate().unwrap();
    let of_size = |size: usize| key.sign(Header::default(), &json!({ "sub": "x".repeat(size) })).unwrap();
    let (fits, over) = (of_size(12_000), of_size(13_000));
    assert!(fits.len() <= 16 << 10 && over.len() > 16 << 10);
    assert!(verify(&fits, &[key.public()]).is_ok());
    assert_eq!(verify(&over, &[key.public()]), Err(JwsError::Malformed));
}
