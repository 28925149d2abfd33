//! A file of secrets: one that others could have read or written is not used, and whoever likes has it sealed with a key
//! that the system's keyring keeps.
//!
//! Keyrings may wait for somebody to unlock them. Nobody else waits for that: neither the lock of what is kept is held
//! meanwhile, nor one of this process.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::folder::{StateFolder, read_open};
use super::keyring::Helper;
use super::owner::check_owner;
use super::seal::{Seal, Sealed};

/// How long a keyring that gives no key is left alone.
const REFUSED: Duration = Duration::from_secs(10);

/// What an empty file that is sealed has in it.
const NOTHING: &[u8] = b"{}";

/// The file.
#[derive(Debug, Clone)]
pub(super) struct Vault {
    folder: StateFolder,
    file: &'static str,
    asked: Arc<Mutex<Option<Asked>>>,
}

/// What the keyring said when it was asked for a key.
#[derive(Debug, Clone)]
struct Asked {
    name: String,
    /// The key, or why there is none.
    seal: Result<Arc<Seal>, String>,
    at: Instant,
}

/// What is in the file; `None` when there is none.
type Content = Option<Vec<u8>>;

/// What is in the file, and what it is sealed with.
type Opened = (Content, Option<Arc<Seal>>);

/// What is in a file that is sealed, or in another one for all that matters here.
#[derive(Serialize, Deserialize)]
struct Closed {
    sealed: Option<Sealed>,
}

impl Vault {
    pub(super) fn new(folder: StateFolder, file: &'static str) -> Self {
        Self { folder, file, asked: Arc::default() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.file(self.file)
    }

    /// What is in it, once the keyring has given its key.
    ///
    /// # Errors
    ///
    /// The file cannot be read, others can read or write it, or the keyring does not give its key.
    pub(super) fn load(&self) -> Result<Content> {
        Ok(self.open()?.0)
    }

    /// What is in it, unless the keyring has to be asked.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub(super) fn at_hand(&self) -> Result<Option<Content>> {
        Ok(self.open_by_what_is_known()?.map(|(content, _)| content))
    }

    /// Who keeps the key, where it is sealed.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or others can read or write it.
    pub(super) fn helper(&self) -> Result<Option<Helper>> {
        Ok(self.read()?.1.map(|sealed| sealed.helper))
    }

    /// Changes what is in it.
    ///
    /// # Errors
    ///
    /// As [`Self::load`], or it cannot be written, or `change` gives one. Nothing has changed then.
    pub(super) fn change<T>(&self, change: impl FnOnce(Content) -> Result<(Vec<u8>, T)>) -> Result<T> {
        self.change_with_seal(|content, seal| {
            let (content, done) = change(content)?;
            Ok((content, seal, done))
        })
    }

    /// Seals it with a new key that this helper keeps, or with none; the old key is forgotten.
    ///
    /// # Errors
    ///
    /// It cannot be read or written, or a helper gives no key. What is in it is still there.
    pub(super) fn seal(&self, helper: Option<&Helper>) -> Result<()> {
        let new = helper.map(Seal::new).transpose()?.map(Arc::new);
        let changed = self.change_with_seal(|content, old| {
            Ok((content.unwrap_or_else(|| NOTHING.to_vec()), new.clone(), old))
        });
        let (unused, done) = match changed {
            // An old file that came back after a crash would be worth nothing without its key.
            Ok(old) => (self.folder.sync().map(|()| old)?, Ok(())),
            Err(fault) => (new, Err(fault)),
        };
        if let Some(Err(fault)) = unused.map(|seal| seal.forget()) {
            tracing::warn!("a key that is of no use any more stays in the keyring: {fault:#}");
        }
        done
    }

    fn change_with_seal<T>(
        &self,
        change: impl FnOnce(Content, Option<Arc<Seal>>) -> Result<(Vec<u8>, Option<Arc<Seal>>, T)>,
    ) -> Result<T> {
        loop {
            self.open()?;
            let _locked = self.folder.lock()?;
            // Sealed with another key meanwhile, it is closed again.
            let Some((content, seal)) = self.open_by_what_is_known()? else { continue };
            let (content, seal, done) = change(content, seal)?;
            let content = match seal {
                Some(seal) => serde_json::to_vec_pretty(&Closed { sealed: Some(seal.seal(&content)?) })?,
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
            let seal = self.ask(&sealed);
            // The key may be gone because the file has another one by now.
            if seal.is_err() && self.read()?.1.is_none_or(|now| now.name != sealed.name) {
                continue;
            }
            return self.open_with(&sealed, seal);
        }
    }

    fn open_by_what_is_known(&self) -> Result<Option<Opened>> {
        let (content, sealed) = self.read()?;
        let Some(sealed) = sealed else { return Ok(Some((content, None))) };
        self.known(&sealed).map(|seal| self.open_with(&sealed, seal)).transpose()
    }

    fn open_with(&self, sealed: &Sealed, seal: Result<Arc<Seal>, String>) -> Result<Opened> {
        let closed = |why: &str| {
            let (shown, program) = (self.path(), sealed.helper.program());
            anyhow!("{} is sealed with a key that {program} keeps, and stays closed: {why}", shown.display())
        };
        let seal = seal.map_err(|why| closed(&why))?;
        let content = seal.open(sealed).map_err(|fault| closed(&fault.to_string()))?;
        Ok((Some(content), Some(seal)))
    }

    /// What the keyring has said of a key, while that holds.
    fn known(&self, sealed: &Sealed) -> Option<Result<Arc<Seal>, String>> {
        let asked = self.asked.lock().clone()?;
        let holds = asked.name == sealed.name && (asked.seal.is_ok() || asked.at.elapsed() < REFUSED);
        holds.then_some(asked.seal)
    }

    fn ask(&self, sealed: &Sealed) -> Result<Arc<Seal>, String> {
        if let Some(known) = self.known(sealed) {
            return known;
        }
        let seal = Seal::kept(&sealed.helper, &sealed.name);
        let seal = seal.map(Arc::new).map_err(|fault| format!("{fault:#}"));
        *self.asked.lock() =
            Some(Asked { name: sealed.name.clone(), seal: seal.clone(), at: Instant::now() });
        seal
    }

    /// What is in the file as it is, and what of it is sealed.
    fn read(&self) -> Result<(Content, Option<Sealed>)> {
        let path = self.path();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok((None, None)),
            Err(fault) => return Err(fault).with_context(|| format!("cannot read {}", path.display())),
        };
        check_owner(&file, &path)?;
        let content = read_open(&file).with_context(|| format!("cannot read {}", path.display()))?;
        // What cannot be read is not sealed, and whoever looks for something in it says so.
        let closed = serde_json::from_slice(&content).unwrap_or(Closed { sealed: None });
        Ok((Some(content), closed.sealed))
    }
}
