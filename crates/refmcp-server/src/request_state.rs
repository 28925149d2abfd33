//! Request states and cursors, which clients carry: sealed, and each request state accepted once.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, AeadCore, KeyInit, OsRng, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use refmcp_proto::engine::{RequestStateUse, Sealer};
use refmcp_proto::jsonrpc::RpcError;

use crate::backplane::OnceOutcome;
use crate::server::Server;

/// Bytes of a nonce.
const NONCE: usize = 24;

/// Seals with XChaCha20-Poly1305: unreadable, unforgeable, and valid for one purpose only.
///
/// Servers that share work share a key.
pub struct StateSealer {
    cipher: XChaCha20Poly1305,
}

impl StateSealer {
    /// Seals with this key.
    pub fn with_key(key: [u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(&key.into()) }
    }

    /// Seals with a random key.
    pub fn random() -> Self {
        Self { cipher: XChaCha20Poly1305::new(&XChaCha20Poly1305::generate_key(&mut OsRng)) }
    }
}

impl fmt::Debug for StateSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateSealer(…)")
    }
}

impl Sealer for StateSealer {
    fn seal(&self, purpose: &[u8], content: &[u8]) -> String {
        let nonce = XChaCha20Poly1305::generate_nonce(&mut OsRng);
        let mut sealed = nonce.to_vec();
        // Sealing fails only for contents of hundreds of gigabytes; an empty text never opens.
        if let Ok(secret) = self.cipher.encrypt(&nonce, Payload { msg: content, aad: purpose }) {
            sealed.extend(secret);
        }
        URL_SAFE_NO_PAD.encode(sealed)
    }

    fn open(&self, purpose: &[u8], sealed: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, secret) = bytes.split_at_checked(NONCE)?;
        self.cipher.decrypt(XNonce::from_slice(nonce), Payload { msg: secret, aad: purpose }).ok()
    }
}

/// Uses a request state; an error when it was used before, at whichever process.
pub(crate) async fn use_once(server: &Server, state: &RequestStateUse) -> Result<(), RpcError> {
    let busy = || RpcError::internal("request states cannot be checked now; try again later");
    match server.backplane().once(once_key(&state.sealed), state.expires - server.now()).await {
        Ok(OnceOutcome::First) => Ok(()),
        // The same words as for any other state that does not open.
        Ok(OnceOutcome::Again) => Err(RpcError::invalid_params("requestState is not valid")),
        Ok(OnceOutcome::Full) => Err(busy()),
        Err(error) => {
            tracing::warn!(%error, "a request state was refused");
            Err(busy())
        }
    }
}

/// The end of a sealed state: its authentication tag, which no other has.
fn once_key(sealed: &str) -> [u8; 32] {
    sealed.as_bytes().last_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::backplane::{BackplaneSettings, MemoryBackplane};

    #[test]
    fn seals_open_for_their_purpose_only() {
        let seal = StateSealer::random();
        let sealed = seal.seal(b"a", b"content");
        assert_eq!(seal.open(b"a", &sealed).as_deref(), Some(&b"content"[..]));
        assert_eq!(seal.open(b"b", &sealed), None);
        assert_eq!(seal.open(b"a", ""), None);
        assert_eq!(seal.open(b"a", &format!("{sealed}-TAMPERED")), None);
        assert_eq!(StateSealer::random().open(b"a", &sealed), None);
        assert_ne!(sealed, seal.seal(b"a", b"content"), "no two seals are alike");
    }

    #[test]
    fn flipped_bits_do_not_open() {
        let seal = StateSealer::with_key([7; 32]);
        let sealed = URL_SAFE_NO_PAD.decode(seal.seal(b"", b"secret")).unwrap();
        for bit in 0..sealed.len() * 8 {
            let mut forged = sealed.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(seal.open(b"", &URL_SAFE_NO_PAD.encode(forged)), None, "bit {bit}");
        }
    }

    #[tokio::test]
    async fn request_states_are_accepted_once() {
        let (one, other) = (Server::builder("one", "1").build(), Server::builder("other", "1").build());
        let (one, other) = (one.unwrap(), other.unwrap());
        other.use_backplane(one.backplane().clone());
        let expires = one.now() + Duration::from_secs(60);
        let seal = StateSealer::random();
        let state = || RequestStateUse { sealed: seal.seal(b"", b"content").into(), expires };
        let (first, second) = (state(), state());
        assert_eq!(use_once(&one, &first).await, Ok(()));
        for server in [&one, &other] {
            assert!(use_once(server, &first).await.is_err());
        }
        assert_eq!(use_once(&other, &second).await, Ok(()));
        assert!(use_once(&one, &second).await.is_err());
    }

    #[tokio::test]
    async fn request_states_are_refused_when_too_many_are_used() {
        let server = Server::builder("full", "1").build().unwrap();
        let settings = BackplaneSettings { keys: 1, ..BackplaneSettings::default() };
        server.use_backplane(Arc::new(MemoryBackplane::new(settings)));
        let expires = server.now() + Duration::from_secs(60);
        let state = |text: &str| RequestStateUse { sealed: text.repeat(32).into(), expires };
        assert_eq!(use_once(&server, &state("a")).await, Ok(()));
        let refused = use_once(&server, &state("b")).await.unwrap_err();
        assert!(refused.message.contains("try again later"), "{refused}");
    }
}
