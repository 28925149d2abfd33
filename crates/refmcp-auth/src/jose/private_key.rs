//! Private keys and signing.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};
use serde::Serialize;

use super::{Algorithm, Header, Jwk, encode};

/// A private key that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateKeyError {
    /// Not a PKCS #8 private key in PEM.
    #[error("not a private key in PEM of the form PKCS #8 (BEGIN PRIVATE KEY)")]
    NotPem,
    /// A key of another algorithm.
    #[error("not a key for {0}: {1}")]
    Unfit(Algorithm, String),
    /// The operating system provides no random bytes.
    #[error("the operating system provides no random bytes to sign with")]
    Random,
}

/// A private key with its algorithm.
pub struct PrivateKey {
    algorithm: Algorithm,
    pair: Pair,
    random: SystemRandom,
    /// The key in PKCS #8, to be stored.
    pkcs8: Vec<u8>,
}

enum Pair {
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl PrivateKey {
    /// A new ES256 key.
    pub fn generate() -> Result<Self, PrivateKeyError> {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        Self::from_pkcs8(Algorithm::Es256, made.map_err(|_| PrivateKeyError::Random)?.as_ref())
    }

    /// Reads a key from PEM.
    pub fn from_pem(algorithm: Algorithm, pem: &str) -> Result<Self, PrivateKeyError> {
        let inside = pem.split_once("-----BEGIN PRIVATE KEY-----").map(|(_, rest)| rest);
        let inside =
            inside.and_then(|rest| rest.split_once("-----END PRIVATE KEY-----")).map(|(text, _)| text);
        let text: String = inside.ok_or(PrivateKeyError::NotPem)?.split_whitespace().collect();
        let der = STANDARD.decode(text).map_err(|_| PrivateKeyError::NotPem)?;
        Self::from_pkcs8(algorithm, &der)
    }

    /// Reads a key from PKCS #8.
    pub fn from_pkcs8(algorithm: Algorithm, der: &[u8]) -> Result<Self, PrivateKeyError> {
        let random = SystemRandom::new();
        let unfit = |error: ring::error::KeyRejected| PrivateKeyError::Unfit(algorithm, error.to_string());
        let ec = |method| EcdsaKeyPair::from_pkcs8(method, der, &random).map(Pair::Ec);
        let pair = match algorithm {
            Algorithm::Es256 => ec(&ECDSA_P256_SHA256_FIXED_SIGNING),
            Algorithm::Es384 => ec(&ECDSA_P384_SHA384_FIXED_SIGNING),
            Algorithm::EdDsa => Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(Pair::Ed),
            Algorithm::Ps256 | Algorithm::Rs256 => {
                RsaKeyPair::from_pkcs8(der).map(|pair| Pair::Rsa(Box::new(pair)))
            }
        };
        Ok(Self { algorithm, pair: pair.map_err(unfit)?, random, pkcs8: der.to_owned() })
    }

    /// The algorithm of the key.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The key in PKCS #8, to be stored.
    pub fn reveal_pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The key in PEM.
    pub fn reveal_pem(&self) -> String {
        let text = STANDARD.encode(&self.pkcs8);
        let lines: String = text
            .as_bytes()
            .chunks(64)
            .flat_map(|line| [line, b"\n"])
            .flatten()
            .map(|byte| char::from(*byte))
            .collect();
        format!("-----BEGIN PRIVATE KEY-----\n{lines}-----END PRIVATE KEY-----\n")
    }

    /// The public key.
    pub fn public(&self) -> Jwk {
        let alg = Some(self.algorithm.name().to_owned());
        match &self.pair {
            Pair::Ec(pair) => {
                let point = pair.public_key().as_ref().get(1..).unwrap_or_default();
                let (x, y) = point.split_at(point.len() / 2);
                let crv = if self.algorithm == Algorithm::Es256 { "P-256" } else { "P-384" };
                let (x, y) = (Some(encode(x)), Some(encode(y)));
                Jwk { kty: "EC".into(), crv: Some(crv.into()), x, y, alg, ..Jwk::default() }
            }
            Pair::Ed(pair) => {
                let x = Some(encode(pair.public_key()));
                Jwk { kty: "OKP".into(), crv: Some("Ed25519".into()), x, alg, ..Jwk::default() }
            }
            Pair::Rsa(pair) => {
                let RsaPublicKeyComponents { n, e } = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                let (n, e) = (Some(encode(n)), Some(encode(e)));
                Jwk { kty: "RSA".into(), n, e, alg, ..Jwk::default() }
            }
        }
    }

    /// Signs claims; the header's `alg` is set to that of the key.
    pub fn sign(&self, header: Header, claims: &impl Serialize) -> Result<String, PrivateKeyError> {
        let header = Header { alg: self.algorithm.name().to_owned(), ..header };
        // Headers and claims are maps of strings, numbers and lists, which JSON can hold.
        let json = |error: serde_json::Error| PrivateKeyError::Unfit(self.algorithm, error.to_string());
        let header = serde_json::to_vec(&header).map_err(json)?;
        let claims = serde_json::to_vec(claims).map_err(json)?;
        let message = format!("{}.{}", encode(header), encode(claims));
        let signature = self.sign_bytes(message.as_bytes())?;
        Ok(format!("{message}.{}", encode(signature)))
    }

    fn sign_bytes(&self, message: &[u8]) -> Result<Vec<u8>, PrivateKeyError> {
        let no_random = |_| PrivateKeyError::Random;
        match &self.pair {
            Pair::Ec(pair) => Ok(pair.sign(&self.random, message).map_err(no_random)?.as_ref().to_vec()),
            Pair::Ed(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let padding: &dyn ring::signature::RsaEncoding = match self.algorithm {
                    Algorithm::Ps256 => &RSA_PSS_SHA256,
                    _ => &RSA_PKCS1_SHA256,
                };
                pair.sign(padding, &self.random, message, &mut signature).map_err(no_random)?;
                Ok(signature)
            }
        }
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_key_round_trips_through_pem() {
        let key = PrivateKey::generate().unwrap();
        let again = PrivateKey::from_pem(Algorithm::Es256, &key.reveal_pem()).unwrap();
        assert_eq!(again.public(), key.public());
        assert!(!format!("{key:?}").contains("PRIVATE KEY"));
    }

    #[test]
    fn invalid_private_keys_are_refused() {
        let key = PrivateKey::generate().unwrap();
        let unfit = PrivateKey::from_pkcs8(Algorithm::Rs256, key.reveal_pkcs8()).unwrap_err();
        assert!(matches!(unfit, PrivateKeyError::Unfit(Algorithm::Rs256, _)));
        for pem in
            ["", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----"]
        {
            assert_eq!(PrivateKey::from_pem(Algorithm::Es256, pem).unwrap_err(), PrivateKeyError::NotPem);
        }
    }
}
