//! RS256 and PS256: padding, digest, salt and length of the key are exactly those of the algorithm.

use refmcp_auth::jose::{Jwk, JwsError};

use super::{decode, encode, rsa, token, verify};

const CLAIMS: &str = r#"{"sub":"me"}"#;

fn key(n: &str) -> Jwk {
    Jwk { kty: "RSA".into(), n: Some(n.into()), e: Some("AQAB".into()), ..Jwk::default() }
}

fn of(alg: &str, signature: &[u8]) -> String {
    token(&format!(r#"{{"alg":"{alg}"}}"#), CLAIMS, signature)
}

#[test]
fn both_paddings_verify() {
    for (alg, signature) in [("RS256", rsa::RS_VALID), ("PS256", rsa::PS_VALID)] {
        let claims = verify(&of(alg, &decode(signature)), &[key(rsa::N)]);
        assert_eq!(claims.unwrap()["sub"], "me", "{alg}");
        let named = Jwk { alg: Some(if alg == "RS256" { "PS256" } else { "RS256" }.into()), ..key(rsa::N) };
        assert_eq!(verify(&of(alg, &decode(signature)), &[named]), Err(JwsError::UnknownKey), "{alg}");
    }
}

#[test]
fn signatures_that_are_refused() {
    let (good, pss) = (decode(rsa::RS_VALID), decode(rsa::PS_VALID));
    let mut flipped = good.clone();
    flipped[0] ^= 1;
    for (alg, signature, what) in [
        ("RS256", Vec::new(), "nothing"),
        ("RS256", flipped, "another bit"),
        ("RS256", vec![0; 256], "zero"),
        ("RS256", decode(rsa::N), "the modulus"),
        ("RS256", vec![0xff; 256], "beyond the modulus"),
        ("RS256", good[..255].to_vec(), "a byte less"),
        ("RS256", [&[0][..], &good].concat(), "a leading zero"),
        ("RS256", [&good[..], &[0]].concat(), "a byte more"),
        ("RS256", decode(rsa::RS_SHORT_PADDING), "padding that ends early"),
        ("RS256", decode(rsa::RS_OTHER_FILL), "other padding"),
        ("RS256", decode(rsa::RS_SHA512), "another digest"),
        ("RS256", decode(rsa::RS_NO_NULL), "a digest without parameters"),
        ("RS256", pss.clone(), "PSS under RS256"),
        ("PS256", good, "PKCS #1 under PS256"),
        ("PS256", decode(rsa::PS_EMPTY_SALT), "no salt"),
        ("PS256", decode(rsa::PS_LONG_SALT), "a long salt"),
        ("PS256", [&[0][..], &pss].concat(), "a leading zero"),
    ] {
        assert_eq!(verify(&of(alg, &signature), &[key(rsa::N)]), Err(JwsError::Signature), "{what}");
    }
}

#[test]
fn public_keys_that_are_refused() {
    let signed = of("RS256", &decode(rsa::RS_VALID));
    let with_zero = encode([&[0][..], &decode(rsa::N)].concat());
    let exponent = |e: &[u8]| Jwk { e: Some(encode(e)), ..key(rsa::N) };
    for (key, what) in [
        (key(""), "an empty modulus"),
        (key(&with_zero), "a leading zero"),
        (exponent(&[]), "an empty exponent"),
        (exponent(&[1]), "an exponent of one"),
        (exponent(&[2]), "an even exponent"),
        (exponent(&[0, 1, 0, 1]), "an exponent with a leading zero"),
        (Jwk { e: None, ..key(rsa::N) }, "no exponent"),
        (Jwk { n: None, ..key(rsa::N) }, "no modulus"),
    ] {
        assert_eq!(verify(&signed, &[key]), Err(JwsError::Signature), "{what}");
    }
    let short = of("RS256", &decode(rsa::SHORT_SIGNATURE));
    assert_eq!(verify(&short, &[key(rsa::SHORT_N)]), Err(JwsError::Signature), "1024 bits are too few");
}
