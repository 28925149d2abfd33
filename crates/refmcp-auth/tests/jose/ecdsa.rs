//! ES256 and ES384: signatures are two numbers of fixed length within their range, and keys are points of their curve.

use refmcp_auth::jose::{Algorithm, Header, Jwk, JwsError, PrivateKey};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
};
use serde_json::json;

use super::{encode, signature_of, signed_otherwise, verify};

/// The order of P-256.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
    0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

fn pair(method: &'static EcdsaSigningAlgorithm, pkcs8: &[u8]) -> EcdsaKeyPair {
    EcdsaKeyPair::from_pkcs8(method, pkcs8, &SystemRandom::new()).unwrap()
}

#[test]
fn signatures_that_are_refused() {
    let key = PrivateKey::generate().unwrap();
    let token = key.sign(Header::default(), &json!({ "sub": "me" })).unwrap();
    let good = signature_of(&token);
    let (r, s) = good.split_at(32);
    let message = token.rsplit_once('.').unwrap().0.as_bytes();
    let der = pair(&ECDSA_P256_SHA256_ASN1_SIGNING, key.reveal_pkcs8())
        .sign(&SystemRandom::new(), message)
        .unwrap();
    let zero = [0; 32];
    let mut flipped = good.clone();
    flipped[40] ^= 1;
    for (signature, what) in [
        (Vec::new(), "nothing"),
        (flipped, "another bit"),
        ([&zero[..], s].concat(), "r is zero"),
        ([r, &zero].concat(), "s is zero"),
        ([zero, zero].concat(), "both are zero"),
        ([&ORDER[..], s].concat(), "r is the order"),
        ([r, &ORDER].concat(), "s is the order"),
        ([&[0xff; 32][..], s].concat(), "r is beyond the order"),
        ([s, r].concat(), "the wrong way round"),
        ([&[0][..], r, &[0], s].concat(), "with leading zeros"),
        ([&zero[..16], r, &zero[..16], s].concat(), "as long as one of P-384"),
        (good[..63].to_vec(), "a byte less"),
        ([&good[..], &[0]].concat(), "a byte more"),
        (der.as_ref().to_vec(), "DER"),
    ] {
        let refused = verify(&signed_otherwise(&token, &signature), &[key.public()]);
        assert_eq!(refused, Err(JwsError::Signature), "{what}");
    }
}

#[test]
fn public_keys_that_are_refused() {
    let key = PrivateKey::generate().unwrap();
    let token = key.sign(Header::default(), &json!({})).unwrap();
    let good = key.public();
    let (x, y) = (super::decode(good.x.as_ref().unwrap()), super::decode(good.y.as_ref().unwrap()));
    let of = |x: &[u8], y: &[u8]| Jwk { x: Some(encode(x)), y: Some(encode(y)), ..good.clone() };
    let mut off_curve = y.clone();
    off_curve[31] ^= 1;
    for (key, what) in [
        (of(&x, &off_curve), "not on the curve"),
        (of(&[0; 32], &[0; 32]), "the origin"),
        (of(&[0xff; 32], &y), "beyond the field"),
        (of(&x, &[]), "an empty y"),
        (of(&[&[0][..], &x].concat(), &y), "a leading zero"),
        (of(&x[..31], &[&y[..], &x[31..]].concat()), "other lengths"),
        (of(&[&[4][..], &x, &y].concat(), &[]), "a point in x"),
        (Jwk { y: None, ..good.clone() }, "no y"),
        (Jwk { x: good.x.as_ref().map(|x| format!("{x}=")), ..good.clone() }, "padding"),
    ] {
        assert_eq!(verify(&token, &[key]), Err(JwsError::Signature), "{what}");
    }
}

#[test]
fn es384_is_of_its_own_curve() {
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let key = PrivateKey::from_pkcs8(Algorithm::Es384, made.as_ref()).unwrap();
    let token = key.sign(Header::default(), &json!({ "sub": "me" })).unwrap();
    assert_eq!(verify(&token, &[key.public()]).unwrap()["sub"], "me");
    let good = signature_of(&token);
    for (signature, what) in [
        ([&[0; 48], &good[48..]].concat(), "r is zero"),
        ([&good[..48], &[0; 48]].concat(), "s is zero"),
        (good[..64].to_vec(), "as long as one of P-256"),
        ([&good[..], &[0]].concat(), "a byte more"),
    ] {
        let refused = verify(&signed_otherwise(&token, &signature), &[key.public()]);
        assert_eq!(refused, Err(JwsError::Signature), "{what}");
    }
    let smaller = Jwk { crv: Some("P-256".into()), alg: None, ..key.public() };
    assert_eq!(verify(&token, &[smaller]), Err(JwsError::UnknownKey));
}
