//! JWK Sets: any document is read or refused, keys verify nothing that was not signed, and thumbprints are stable.

use refmcp_auth::jose::{Algorithm, Jwks};

/// The bytes are a JWK Set.
pub fn run(bytes: &[u8]) {
    let Ok(keys) = serde_json::from_slice::<Jwks>(bytes) else { return };
    let text = serde_json::to_string(&keys).expect("keys are JSON");
    assert_eq!(serde_json::from_str::<Jwks>(&text).expect("its own JSON"), keys);
    for algorithm in Algorithm::ALL {
        for key in keys.candidates(algorithm, None) {
            assert!(key.is_for(algorithm));
            for signature in [&[][..], &[0; 64], &[0; 96], &[0xff; 256]] {
                assert!(!key.verify(algorithm, b"a message", signature), "{algorithm} by {key:?}");
            }
        }
        assert!(keys.candidates(algorithm, Some("a")).count() <= keys.candidates(algorithm, None).count());
    }
    for key in &keys.keys {
        if let Ok(thumbprint) = key.thumbprint() {
            assert_eq!(thumbprint.len(), 43, "a SHA-256 digest in base64url");
            assert_eq!(key.clone().thumbprint(), Ok(thumbprint));
        }
    }
}
