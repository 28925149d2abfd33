//! EdDSA: an Ed25519 signature has one form.

use refmcp_auth::jose::{Algorithm, Header, Jwk, JwsError, PrivateKey};
use serde_json::json;

use super::{encode, signature_of, signed_otherwise, verify};

/// The order of the base point, little end first.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

fn key() -> PrivateKey {
    // The prefix of PKCS #8 for Ed25519 (RFC 8410), and a seed.
    let prefix = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    PrivateKey::from_pkcs8(Algorithm::EdDsa, &[&prefix[..], &[5; 32]].concat()).unwrap()
}

/// The sum of two numbers, little end first.
fn sum(one: &[u8], other: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let digits = one.iter().zip(other).map(|(one, other)| {
        let digit = u16::from(*one) + u16::from(*other) + carry;
        carry = digit >> 8;
        digit.to_le_bytes()[0]
    });
    digits.collect()
}

#[test]
fn signatures_that_are_refused() {
    let key = key();
    let token = key.sign(Header::default(), &json!({ "sub": "me" })).unwrap();
    assert!(verify(&token, &[key.public()]).is_ok());
    let good = signature_of(&token);
    let (r, s) = good.split_at(32);
    for (signature, what) in [
        (Vec::new(), "nothing"),
        ([r, &sum(s, &ORDER)].concat(), "s beyond the order, which is the same number"),
        ([r, &[0; 32]].concat(), "s is zero"),
        ([&[0; 32], s].concat(), "r is zero"),
        (vec![0; 64], "both are zero"),
        ([s, r].concat(), "the wrong way round"),
        (good[..63].to_vec(), "a byte less"),
        ([&good[..], &[0]].concat(), "a byte more"),
    ] {
        let refused = verify(&signed_otherwise(&token, &signature), &[key.public()]);
        assert_eq!(refused, Err(JwsError::Signature), "{what}");
    }
}

#[test]
fn public_keys_that_are_refused() {
    let key = key();
    let token = key.sign(Header::default(), &json!({})).unwrap();
    for (x, what) in [
        (None, "none"),
        (Some(encode([])), "an empty one"),
        (Some(encode([1; 31])), "a byte less"),
        (Some(encode([1; 33])), "a byte more"),
        (Some(encode([0xff; 32])), "no point"),
    ] {
        let unfit = Jwk { x, ..key.public() };
        assert_eq!(verify(&token, &[unfit]), Err(JwsError::Signature), "{what}");
    }
    let other_curve = Jwk { crv: Some("Ed448".into()), ..key.public() };
    assert_eq!(verify(&token, &[other_curve]), Err(JwsError::UnknownKey));
}
