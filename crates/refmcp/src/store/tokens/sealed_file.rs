//! A file of secrets: one that others could have read or written is not used, and it can be sealed with a key in the
//! system's keyring.
//!
//! A keyring may wait for its user to unlock it. Neither the lock of the state folder nor one of this process is held
//! meanwhile.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, AeadCore, KeyInit, OsRng, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::keyring::CredentialHelper;
use crate::store::folder::{StateFolder, read_open};

#[cfg(unix)]
use anyhow::bail;

/// How long a keyring that gave no key is not asked again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The content of an empty file that is sealed.
const EMPTY: &[u8] = b"{}";

/// The file.
#[derive(Debug, Clone)]
pub(crate) struct SealedFile {
    folder: StateFolder,
    file: &'static str,
    last_key: Arc<Mutex<Option<CachedKey>>>,
}

/// A key, or why the keyring did not give it.
type KeyResult = Result<Arc<SealingKey>, String>;

/// What the keyring last gave.
#[derive(Debug, Clone)]
struct CachedKey {
    name: String,
    key: KeyResult,
    at: Instant,
}

/// The content of the file; `None` when there is none.
type Content = Option<Vec<u8>>;

/// The content of the file, and the key that it is sealed with.
type Opened = (Content, Option<Arc<SealingKey>>);

/// The document in a file that is sealed; of any other, nothing is read here.
#[derive(Serialize, Deserialize)]
struct SealedDocument {
    sealed: Option<Sealed>,
}

impl SealedFile {
    pub(super) fn new(folder: StateFolder, file: &'static str) -> Self {
        Self { folder, file, last_key: Arc::default() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.file(self.file)
    }

    /// Its content, once the keyring has given its key.
    ///
    /// # Errors
    ///
    /// The file cannot be read, others can read or write it, or the keyring does not give its key.
    pub(super) fn load(&self) -> Result<Content> {
        Ok(self.open()?.0)
    }

    /// Its content, unless the keyring has to be asked.
    pub(super) fn load_cached(&self) -> Result<Option<Content>> {
        Ok(self.open_cached()?.map(|(content, _)| content))
    }

    /// The helper that keeps the key, where it is sealed.
    pub(crate) fn helper(&self) -> Result<Option<CredentialHelper>> {
        Ok(self.read()?.1.map(|sealed| sealed.helper))
    }

    /// Changes its content.
    ///
    /// # Errors
    ///
    /// As [`Self::load`], or it cannot be written, or `change` gives one. Nothing has changed then.
    pub(super) fn change<T>(&self, change: impl FnOnce(Content) -> Result<(Vec<u8>, T)>) -> Result<T> {
        self.change_with_key(|content, key| {
            let (content, done) = change(content)?;
            Ok((content, key, done))
        })
    }

    /// Seals it with a new key that this helper keeps, or with none; the old key is erased.
    ///
    /// # Errors
    ///
    /// It cannot be read or written, or a helper gives no key. Its content is still there.
    pub(crate) fn seal(&self, helper: Option<&CredentialHelper>) -> Result<()> {
        let new = helper.map(SealingKey::generate).transpose()?.map(Arc::new);
        let changed = self.change_with_key(|content, old| {
            Ok((content.unwrap_or_else(|| EMPTY.to_vec()), new.clone(), old))
        });
        let (unused, done) = match changed {
            // An old file that came back after a crash would be worth nothing without its key.
            Ok(old) => (self.folder.sync().map(|()| old)?, Ok(())),
            Err(error) => (new, Err(error)),
        };
        if let Some(Err(error)) = unused.map(|key| key.erase()) {
            tracing::warn!("a key that is of no use any more stays in the keyring: {error:#}");
        }
        done
    }

    fn change_with_key<T>(
        &self,
        change: impl FnOnce(Content, Option<Arc<SealingKey>>) -> Result<(Vec<u8>, Option<Arc<SealingKey>>, T)>,
    ) -> Result<T> {
        loop {
            self.open()?;
            let _locked = self.folder.lock()?;
            // Another process may have sealed it with another key meanwhile.
            let Some((content, key)) = self.open_cached()? else { continue };
            let (content, key, done) = change(content, key)?;
            let content = match key {
                Some(key) => {
                    serde_json::to_vec_pretty(&SealedDocument { sealed: Some(key.seal(&content)?) })?
                }
                None => content,
            };
            self.folder.replace(self.file, &content)?;
            return Ok(done);
        }
    }

    fn open(&self) -> Result<Opened> {
        loop {
            let (content, sealed) = self.read()?;
            let Some(sealed) = sealed else { return Ok((content, None)) };
            let key = self.key(&sealed);
            // The key may be gone because the file has another one by now.
            if key.is_err() && self.read()?.1.is_none_or(|now| now.name != sealed.name) {
                continue;
            }
            return self.open_with(&sealed, key);
        }
    }

    fn open_cached(&self) -> Result<Option<Opened>> {
        let (content, sealed) = self.read()?;
        let Some(sealed) = sealed else { return Ok(Some((content, None))) };
        self.cached_key(&sealed).map(|key| self.open_with(&sealed, key)).transpose()
    }

    fn open_with(&self, sealed: &Sealed, key: KeyResult) -> Result<Opened> {
        let closed = |why: &str| {
            let (shown, program) = (self.path(), sealed.helper.program());
            anyhow!("{} is sealed with a key that {program} keeps, and stays closed: {why}", shown.display())
        };
        let key = key.map_err(|why| closed(&why))?;
        let content = key.open(sealed).map_err(|error| closed(&error.to_string()))?;
        Ok((Some(content), Some(key)))
    }

    fn cached_key(&self, sealed: &Sealed) -> Option<KeyResult> {
        let last = self.last_key.lock().clone()?;
        let holds = last.name == sealed.name && (last.key.is_ok() || last.at.elapsed() < RETRY_AFTER);
        holds.then_some(last.key)
    }

    fn key(&self, sealed: &Sealed) -> KeyResult {
        if let Some(cached) = self.cached_key(sealed) {
            return cached;
        }
        let key = SealingKey::get(&sealed.helper, &sealed.name);
        let key = key.map(Arc::new).map_err(|error| format!("{error:#}"));
        *self.last_key.lock() =
            Some(CachedKey { name: sealed.name.clone(), key: key.clone(), at: Instant::now() });
        key
    }

    /// The bytes of the file, and what of them is sealed.
    fn read(&self) -> Result<(Content, Option<Sealed>)> {
        let path = self.path();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, None)),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        check_owner(&file, &path)?;
        let content = read_open(&file).with_context(|| format!("cannot read {}", path.display()))?;
        // A file that cannot be parsed is not sealed; the fault is told where its content is parsed.
        let document = serde_json::from_slice(&content).unwrap_or(SealedDocument { sealed: None });
        Ok((Some(content), document.sealed))
    }
}

/// Refuses a file that another user could have read or written, or that stands in a folder which others can write.
#[cfg(unix)]
fn check_owner(file: &File, path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;

    let us = rustix::process::geteuid().as_raw();
    let about = file.metadata().with_context(|| format!("cannot read {}", path.display()))?;
    let shown = path.display();
    if about.uid() != us && about.uid() != 0 {
        bail!(
            "{shown} belongs to another user, so the tokens in it are not used; remove it and log in again"
        );
    }
    if about.mode() & 0o077 != 0 {
        let mode = about.mode() & 0o777;
        bail!(
            "others can get at {shown} (its mode is {mode:03o}), so the tokens in it are not used; \
             if they did not, `chmod 600 {shown}`, else remove it and log in again"
        );
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mode = folder.metadata().with_context(|| format!("cannot look at {}", folder.display()))?.mode();
    if mode & 0o022 != 0 && mode & 0o1000 == 0 {
        let folder = folder.display();
        bail!("others can write into {folder}, so the tokens there are not used; `chmod 700 {folder}`");
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_owner(_file: &File, _path: &Path) -> Result<()> {
    // The folder is in the user's own profile, which the system keeps from others.
    Ok(())
}

/// Bytes of a nonce, which stands before what it sealed.
const NONCE_BYTES: usize = 12;

/// Sealed content, and where its key is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sealed {
    pub(super) helper: CredentialHelper,
    /// The name of the key in the keyring.
    pub(super) name: String,
    /// A nonce and the ciphertext, in Base64.
    content: String,
}

/// A key in the keyring.
pub(super) struct SealingKey {
    helper: CredentialHelper,
    name: String,
    cipher: ChaCha20Poly1305,
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({}, {})", self.helper.program(), self.name)
    }
}

impl SealingKey {
    /// Makes a key and stores it in the keyring.
    pub(super) fn generate(helper: &CredentialHelper) -> Result<Self> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(std::io::Error::other).context("no random numbers")?;
        // Helpers expect URLs.
        let name = format!("https://refmcp.localhost/tokens/{:032x}", u128::from_be_bytes(id));
        helper.store(&name, &STANDARD.encode(ChaCha20Poly1305::generate_key(&mut OsRng)))?;
        // A key that cannot be got back must not seal anything.
        Self::get(helper, &name)
            .with_context(|| format!("{} does not keep what it is given", helper.program()))
    }

    /// The key of this name.
    pub(super) fn get(helper: &CredentialHelper, name: &str) -> Result<Self> {
        let secret = helper.get(name)?;
        let secret =
            secret.context("it has no such key any more; without that, remove it and log in again")?;
        let key = STANDARD.decode(secret).ok().and_then(|key| ChaCha20Poly1305::new_from_slice(&key).ok());
        let cipher = key.context("what it keeps is no key of ours")?;
        Ok(Self { helper: helper.clone(), name: name.to_owned(), cipher })
    }

    /// Erases the key: what it sealed stays closed.
    pub(super) fn erase(&self) -> Result<()> {
        self.helper.erase(&self.name)
    }

    /// Seals content; the seal holds under the name of this key alone.
    pub(super) fn seal(&self, content: &[u8]) -> Result<Sealed> {
        let nonce = ChaCha20Poly1305::generate_nonce(&mut OsRng);
        let payload = Payload { msg: content, aad: self.name.as_bytes() };
        let sealed = self.cipher.encrypt(&nonce, payload).map_err(|_| anyhow!("too long to be sealed"))?;
        let content = STANDARD.encode([nonce.as_slice(), &sealed].concat());
        Ok(Sealed { helper: self.helper.clone(), name: self.name.clone(), content })
    }

    /// Opens what was sealed.
    pub(super) fn open(&self, sealed: &Sealed) -> Result<Vec<u8>> {
        let content = STANDARD.decode(&sealed.content).ok();
        let opened = content.as_deref().and_then(|content| {
            let (nonce, sealed) = content.split_at_checked(NONCE_BYTES)?;
            let payload = Payload { msg: sealed, aad: self.name.as_bytes() };
            self.cipher.decrypt(Nonce::from_slice(nonce), payload).ok()
        });
        opened.context(
            "it was changed, or sealed with another key; without the right one, remove it and log in again",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the file of an earlier version has it.
    const SEALED: &str = "AAECAwQFBgcICQoLV1eWUQ312181TFqXwuSeso2OWlhG3Y+EEjnactc=";

    #[test]
    fn what_was_sealed_before_is_opened_and_nothing_that_was_changed() {
        let helper = CredentialHelper::try_from("pass".to_owned()).unwrap();
        let cipher = ChaCha20Poly1305::new_from_slice(&[7; 32]).unwrap();
        let key = SealingKey {
            helper: helper.clone(),
            name: "https://refmcp.localhost/tokens/1".to_owned(),
            cipher,
        };
        let sealed = |content: &str| Sealed {
            helper: helper.clone(),
            name: key.name.clone(),
            content: content.to_owned(),
        };
        assert_eq!(key.open(&sealed(SEALED)).unwrap(), b"{\"grants\":[]}");
        assert_eq!(key.open(&key.seal(b"new").unwrap()).unwrap(), b"new");
        for changed in ["", "?", "AAAA", &SEALED.replacen('A', "B", 1), &SEALED[..24]] {
            let error = key.open(&sealed(changed)).unwrap_err().to_string();
            assert!(error.contains("was changed"), "{changed}: {error}");
        }
    }
}
