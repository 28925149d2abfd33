//! A file of secrets: one that others could have read or written is not used, and it can be sealed with a key in the
//! system's keyring.
//!
//! A keyring may wait for its user to unlock it. Neither the lock of the state folder nor one of this process is held
//! meanwhile.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(unix)]
use anyhow::bail;
use anyhow::{Context, Result, anyhow};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::keyring::CredentialHelper;
use super::sealing::{Sealed, SealingKey};
use crate::store::folder::{StateFolder, read_open};

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
            Err(fault) => (new, Err(fault)),
        };
        if let Some(Err(fault)) = unused.map(|key| key.erase()) {
            tracing::warn!("a key that is of no use any more stays in the keyring: {fault:#}");
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
        let content = key.open(sealed).map_err(|fault| closed(&fault.to_string()))?;
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
        let key = key.map(Arc::new).map_err(|fault| format!("{fault:#}"));
        *self.last_key.lock() =
            Some(CachedKey { name: sealed.name.clone(), key: key.clone(), at: Instant::now() });
        key
    }

    /// The bytes of the file, and what of them is sealed.
    fn read(&self) -> Result<(Content, Option<Sealed>)> {
        let path = self.path();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok((None, None)),
            Err(fault) => return Err(fault).with_context(|| format!("cannot read {}", path.display())),
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
