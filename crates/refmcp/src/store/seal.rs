//! What is kept in a file, sealed with a key that the keyring keeps: keyrings are made for short secrets, and a file can
//! be locked and replaced as a whole.

use std::fmt;

use anyhow::{Context, Result, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};

use super::keyring::Helper;

const KEY_BYTES: usize = 32;

/// A sealed text, and where the key is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sealed {
    pub(super) helper: Helper,
    /// What the key is kept under.
    pub(super) name: String,
    /// A nonce and what it was sealed with, in Base64.
    content: String,
}

/// A key to seal with and to open.
pub(super) struct Seal {
    pub(super) helper: Helper,
    pub(super) name: String,
    key: LessSafeKey,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seal({}, {})", self.helper.program(), self.name)
    }
}

impl Seal {
    /// Makes a key, and has it kept.
    ///
    /// # Errors
    ///
    /// The helper does not keep it.
    pub(super) fn new(helper: &Helper) -> Result<Self> {
        let id: String = random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        // Helpers expect addresses.
        let name = format!("https://refmcp.localhost/tokens/{id}");
        helper.keep(&name, &STANDARD.encode(random::<KEY_BYTES>()?))?;
        // What cannot be got back must not be sealed with.
        Self::kept(helper, &name)
            .with_context(|| format!("{} does not keep what it is given", helper.program()))
    }

    /// The key that is kept under a name.
    ///
    /// # Errors
    ///
    /// The helper does not give it.
    pub(super) fn kept(helper: &Helper, name: &str) -> Result<Self> {
        let secret = helper.get(name)?;
        let secret =
            secret.context("it has no such key any more; without that, remove it and log in again")?;
        let bytes = STANDARD.decode(secret).ok().filter(|bytes| bytes.len() == KEY_BYTES);
        let bytes = bytes.context("what it keeps is no key of ours")?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).map_err(|_| anyhow!("no key"))?;
        Ok(Self { helper: helper.clone(), name: name.to_owned(), key: LessSafeKey::new(key) })
    }

    /// Has the key forgotten: nobody opens again what was sealed with it.
    ///
    /// # Errors
    ///
    /// The helper does not forget it.
    pub(super) fn forget(&self) -> Result<()> {
        self.helper.erase(&self.name)
    }

    /// Seals a text.
    ///
    /// # Errors
    ///
    /// The system gives no random numbers.
    pub(super) fn seal(&self, plain: &[u8]) -> Result<Sealed> {
        let nonce = random::<NONCE_LEN>()?;
        let mut content = plain.to_vec();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), self.about(), &mut content)
            .map_err(|_| anyhow!("too long to be sealed"))?;
        let content = STANDARD.encode([&nonce[..], &content].concat());
        Ok(Sealed { helper: self.helper.clone(), name: self.name.clone(), content })
    }

    /// Opens what was sealed.
    ///
    /// # Errors
    ///
    /// It was sealed with another key, or changed since.
    pub(super) fn open(&self, sealed: &Sealed) -> Result<Vec<u8>> {
        let changed = || {
            anyhow!(
                "it was changed, or sealed with another key; without the right one, remove it and log in again"
            )
        };
        let mut content = STANDARD.decode(&sealed.content).map_err(|_| changed())?;
        ensure!(content.len() >= NONCE_LEN, changed());
        let mut sealed = content.split_off(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(&content).map_err(|_| changed())?;
        let plain = self.key.open_in_place(nonce, self.about(), &mut sealed).map_err(|_| changed())?;
        Ok(plain.to_vec())
    }

    /// What else a seal is good for: nothing.
    fn about(&self) -> Aad<&[u8]> {
        Aad::from(self.name.as_bytes())
    }
}

fn random<const COUNT: usize>() -> Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other).context("no random numbers")?;
    Ok(bytes)
}
