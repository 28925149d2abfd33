//! Public keys as JWK and JWK Set (RFC 7517).

use ring::digest;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};

use super::{Algorithm, decode, encode};

json_struct! {
    /// A public key. Private members are not read.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Jwk {
        /// The key type: `EC`, `OKP`, `RSA`.
        kty: String,
        /// The key id.
        kid?: String,
        /// The intended use: `sig`.
        #[serde(rename = "use")]
        used_for?: String,
        /// The only algorithm of the key.
        alg?: String,
        /// The curve.
        crv?: String,
        /// The x coordinate, or the Ed25519 public key.
        x?: String,
        /// The y coordinate.
        y?: String,
        /// The modulus.
        n?: String,
        /// The exponent.
        e?: String,
    }
}

/// A JWK Set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jwks {
    /// The keys.
    pub keys: Vec<Jwk>,
}

/// A key that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key is malformed or of an unsupported type")]
pub struct InvalidKey;

impl Jwk {
    /// Verifies a signature over a message, if the key is of this algorithm.
    pub fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        self.is_for(algorithm) && self.check(algorithm, message, signature).unwrap_or(false)
    }

    /// True if the key makes signatures of this algorithm.
    pub fn is_for(&self, algorithm: Algorithm) -> bool {
        let kind = match algorithm {
            Algorithm::Es256 => ("EC", Some("P-256")),
            Algorithm::Es384 => ("EC", Some("P-384")),
            Algorithm::EdDsa => ("OKP", Some("Ed25519")),
            Algorithm::Ps256 | Algorithm::Rs256 => ("RSA", None),
        };
        (self.kty.as_str(), self.crv.as_deref()) == kind
            && self.alg.as_deref().is_none_or(|named| named == algorithm.name())
            && self.used_for.as_deref().is_none_or(|used| used == "sig")
    }

    fn check(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> Option<bool> {
        Some(match algorithm {
            Algorithm::Es256 | Algorithm::Es384 => {
                let (method, size) = match algorithm {
                    Algorithm::Es256 => (&ECDSA_P256_SHA256_FIXED, 32),
                    _ => (&ECDSA_P384_SHA384_FIXED, 48),
                };
                let (x, y) = (decode(self.x.as_ref()?)?, decode(self.y.as_ref()?)?);
                if x.len() != size || y.len() != size {
                    return None;
                }
                let point = [&[4][..], &x, &y].concat();
                UnparsedPublicKey::new(method, point).verify(message, signature).is_ok()
            }
            Algorithm::EdDsa => {
                let key = decode(self.x.as_ref()?)?;
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok()
            }
            Algorithm::Ps256 | Algorithm::Rs256 => {
                let method = match algorithm {
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                let (n, e) = (decode(self.n.as_ref()?)?, decode(self.e.as_ref()?)?);
                RsaPublicKeyComponents { n, e }.verify(method, message, signature).is_ok()
            }
        })
    }

    /// The JWK thumbprint (RFC 7638).
    ///
    /// # Errors
    /// The key lacks members of its type.
    pub fn thumbprint(&self) -> Result<String, InvalidKey> {
        let part = |part: &Option<String>| part.clone().ok_or(InvalidKey);
        let members = match self.kty.as_str() {
            "EC" => vec![
                ("crv", part(&self.crv)?),
                ("kty", "EC".into()),
                ("x", part(&self.x)?),
                ("y", part(&self.y)?),
            ],
            "OKP" => vec![("crv", part(&self.crv)?), ("kty", "OKP".into()), ("x", part(&self.x)?)],
            "RSA" => vec![("e", part(&self.e)?), ("kty", "RSA".into()), ("n", part(&self.n)?)],
            _ => return Err(InvalidKey),
        };
        let members: serde_json::Map<_, _> =
            members.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let text = serde_json::Value::Object(members).to_string();
        Ok(encode(digest::digest(&digest::SHA256, text.as_bytes())))
    }
}

impl Jwks {
    /// The keys that may have signed a token with this algorithm and key id.
    pub fn candidates(&self, algorithm: Algorithm, kid: Option<&str>) -> impl Iterator<Item = &Jwk> {
        self.keys.iter().filter(move |key| {
            key.is_for(algorithm) && kid.is_none_or(|kid| key.kid.as_deref().is_none_or(|known| known == kid))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thumbprint_matches_rfc_7638() {
        let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
        let key = Jwk { kty: "RSA".into(), n: Some(n.into()), e: Some("AQAB".into()), ..Jwk::default() };
        assert_eq!(key.thumbprint().unwrap(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }

    #[test]
    fn keys_are_for_their_own_algorithms() {
        let key = Jwk { kty: "EC".into(), crv: Some("P-256".into()), ..Jwk::default() };
        assert!(key.is_for(Algorithm::Es256));
        assert!(!key.is_for(Algorithm::Rs256) && !key.is_for(Algorithm::Es384));
        assert!(!Jwk { used_for: Some("enc".into()), ..key.clone() }.is_for(Algorithm::Es256));
        assert!(!Jwk { alg: Some("ES384".into()), ..key.clone() }.is_for(Algorithm::Es256));
        assert!(!key.verify(Algorithm::Es256, b"", b""));
    }
}
