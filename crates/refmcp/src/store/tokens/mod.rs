//! The token store: tokens and client registrations in one file, by server and issuer. A damaged file is never
//! overwritten.

pub(crate) mod keyring;
mod sealed_file;

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::sealed_file::SealedFile;
use super::folder::{FolderLock, StateFolder};
use crate::args::sha256_hex;

/// The file.
const FILE: &str = "tokens.json";

/// Entries of each kind that are kept.
const MAX_ENTRIES: usize = 1000;

/// How long another process may get tokens: longer than any exchange with an authorization server takes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// How long between two attempts to take a lock.
const LOCK_POLL: Duration = Duration::from_millis(20);

/// The tokens of this user.
#[derive(Debug, Clone)]
pub(crate) struct Tokens {
    folder: StateFolder,
    pub(crate) file: SealedFile,
}

/// The content of the file. Members that are not known here are a later version's, and kept.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct TokenFile {
    #[serde(default)]
    pub(crate) grants: Vec<TokenEntry>,
    /// Clients that issuers know.
    #[serde(default)]
    pub(crate) registrations: Vec<TokenEntry>,
    /// The options of the last logins.
    #[serde(default, rename = "manners")]
    pub(crate) logins: Vec<TokenEntry>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// A value for a server and an issuer; registrations are for an issuer alone, options of a login for a server alone.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct TokenEntry {
    /// The server's canonical address; empty where it does not matter.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) server: String,
    /// Who issued it; empty where it does not matter.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) issuer: String,
    /// Full of secrets.
    pub(crate) value: Value,
}

impl fmt::Debug for TokenEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, issuer, .. } = self;
        f.debug_struct("TokenEntry").field("server", server).field("issuer", issuer).finish_non_exhaustive()
    }
}

/// Selects a list of the file.
type EntryList = fn(&mut TokenFile) -> &mut Vec<TokenEntry>;

impl Tokens {
    /// Those in this folder.
    pub(crate) fn new(folder: StateFolder) -> Self {
        Self { file: SealedFile::new(folder.clone(), FILE), folder }
    }

    /// The whole file. Where it is sealed, the keyring is waited for.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is damaged, or others can read or write it; or the keyring does not give its key.
    pub(crate) fn load(&self) -> Result<TokenFile> {
        self.parse(self.file.load()?)
    }

    /// The whole file, unless the keyring has to be waited for.
    pub(crate) fn load_cached(&self) -> Result<Option<TokenFile>> {
        self.file.load_cached()?.map(|content| self.parse(content)).transpose()
    }

    /// Keeps an entry, instead of any for the same server and issuer.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written; nothing has changed then.
    pub(crate) fn keep(&self, list: EntryList, entry: TokenEntry) -> Result<()> {
        self.change(|kept| {
            let entries = list(kept);
            entries.retain(|known| (&known.server, &known.issuer) != (&entry.server, &entry.issuer));
            if entries.len() >= MAX_ENTRIES {
                bail!("there are {MAX_ENTRIES} entries already; log out somewhere");
            }
            entries.push(entry);
            Ok(())
        })
    }

    /// Forgets the entries that are meant, and gives them.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written; nothing has changed then.
    pub(crate) fn forget(
        &self,
        list: EntryList,
        meant: impl Fn(&TokenEntry) -> bool,
    ) -> Result<Vec<TokenEntry>> {
        self.change(|kept| {
            let entries = list(kept);
            let (gone, left) = std::mem::take(entries).into_iter().partition(|entry| meant(entry));
            *entries = left;
            Ok(gone)
        })
    }

    /// Locks out other processes that get tokens for this server. The file of tokens stays unlocked.
    pub(crate) async fn lock(&self, server: &str) -> Result<FolderLock> {
        self.lock_within(server, LOCK_TIMEOUT).await
    }

    async fn lock_within(&self, server: &str, timeout: Duration) -> Result<FolderLock> {
        let end = Instant::now() + timeout;
        // The name of a server is no name of a file; its hash is.
        let hash = sha256_hex(server.as_bytes());
        let lock = self.folder.lock_file(&format!("tokens.{}.lock", hash.get(..16).unwrap_or_default()))?;
        while !lock.try_lock()? {
            if Instant::now() >= end {
                let (path, seconds) = (lock.path.display(), timeout.as_secs());
                bail!(
                    "another process has been getting tokens for {server} for {seconds} s: it waits for a login, or was \
                     stopped; end it (it holds {path}), or try again later"
                );
            }
            tokio::time::sleep(LOCK_POLL).await;
        }
        Ok(lock)
    }

    fn change<T>(&self, change: impl FnOnce(&mut TokenFile) -> Result<T>) -> Result<T> {
        self.file.change(|content| {
            let mut kept = self.parse(content)?;
            let done = change(&mut kept)?;
            let mut content = serde_json::to_vec_pretty(&kept).context("cannot write the tokens")?;
            content.push(b'\n');
            Ok((content, done))
        })
    }

    fn parse(&self, content: Option<Vec<u8>>) -> Result<TokenFile> {
        let Some(content) = content else { return Ok(TokenFile::default()) };
        // The fault of a parser may quote what it read, so only where it is told.
        serde_json::from_slice(&content).map_err(|error| {
            anyhow::anyhow!(
                "{} is damaged (line {}, column {}) and was left as it is; repair it, or remove it and log in again",
                self.file.path().display(),
                error.line(),
                error.column()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn entry(server: &str, issuer: &str, value: &str) -> TokenEntry {
        TokenEntry { server: server.to_owned(), issuer: issuer.to_owned(), value: json!({ "token": value }) }
    }

    fn tokens() -> (tempfile::TempDir, Tokens) {
        let temporary = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(StateFolder::at(&temporary.path().join("state")));
        (temporary, tokens)
    }

    fn names(tokens: &Tokens) -> Vec<String> {
        let kept = tokens.load().unwrap();
        kept.grants
            .iter()
            .map(|entry| format!("{} {} {}", entry.server, entry.issuer, entry.value["token"]))
            .collect()
    }

    #[test]
    fn one_entry_is_kept_for_a_server_and_an_issuer() {
        let (_folder, tokens) = tokens();
        assert!(names(&tokens).is_empty());
        for (server, issuer, value) in [("s", "i", "1"), ("s", "j", "2"), ("t", "i", "3"), ("s", "i", "4")] {
            tokens.keep(|file| &mut file.grants, entry(server, issuer, value)).unwrap();
        }
        tokens.keep(|file| &mut file.registrations, entry("", "i", "5")).unwrap();
        assert_eq!(names(&tokens), ["s j \"2\"", "t i \"3\"", "s i \"4\""]);
        let gone = tokens.forget(|file| &mut file.grants, |entry| entry.server == "s").unwrap();
        assert_eq!(gone.len(), 2);
        assert_eq!(names(&tokens), ["t i \"3\""]);
        assert_eq!(tokens.load().unwrap().registrations.len(), 1);
    }

    #[test]
    fn secrets_are_not_shown() {
        assert!(!format!("{:?}", entry("s", "i", "hush")).contains("hush"));
    }

    #[test]
    fn a_damaged_file_is_named_not_quoted_and_left_as_it_is() {
        let (_folder, tokens) = tokens();
        tokens.keep(|file| &mut file.grants, entry("s", "i", "1")).unwrap();
        let path = tokens.folder.file(FILE);
        for damaged in ["", "{\"grants\": [\"hush", "[]", "{\"grants\": 3}", "\0\0\0\0"] {
            fs::write(&path, damaged).unwrap();
            for error in [
                tokens.load().err().unwrap(),
                tokens.keep(|file| &mut file.grants, entry("s", "i", "2")).unwrap_err(),
                tokens.forget(|file| &mut file.grants, |_| true).unwrap_err(),
            ] {
                let error = format!("{error:#}");
                assert!(error.contains("tokens.json is damaged"), "{error}");
                assert!(!error.contains("hush"), "{error}");
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
        }
    }

    #[test]
    fn what_a_later_version_keeps_is_kept() {
        let (_folder, tokens) = tokens();
        tokens.keep(|file| &mut file.grants, entry("s", "i", "1")).unwrap();
        let path = tokens.folder.file(FILE);
        let mut content: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        content["later"] = json!([1]);
        fs::write(&path, content.to_string()).unwrap();
        tokens.keep(|file| &mut file.grants, entry("t", "i", "1")).unwrap();
        let content: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(content["later"], json!([1]));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_get_at_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        use std::path::Path;

        let (_folder, tokens) = tokens();
        tokens.keep(|file| &mut file.grants, entry("s", "i", "1")).unwrap();
        let path = tokens.folder.file(FILE);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        for bad in [0o640, 0o604, 0o620, 0o602, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(bad)).unwrap();
            let error = format!("{:#}", tokens.load().err().unwrap());
            assert!(error.contains("others can get at") && error.contains("tokens.json"), "{error}");
            assert!(tokens.keep(|file| &mut file.grants, entry("t", "i", "2")).is_err());
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = format!("{:#}", tokens.load().err().unwrap());
        assert!(error.contains("others can write into"), "{error}");
        fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(names(&tokens), ["s i \"1\""]);
    }

    #[test]
    fn nothing_is_lost_when_many_write_at_once() {
        let (_folder, tokens) = tokens();
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let tokens = &tokens;
                scope.spawn(move || {
                    for number in 0..10 {
                        tokens
                            .keep(|file| &mut file.grants, entry(&format!("{writer}.{number}"), "i", "1"))
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(names(&tokens).len(), 80);
    }

    #[tokio::test]
    async fn a_lock_that_is_held_for_too_long_is_told_of() {
        let (_folder, tokens) = tokens();
        let held = tokens.lock("https://s").await.unwrap();
        let error = tokens.lock_within("https://s", LOCK_POLL).await.unwrap_err().to_string();
        assert!(error.contains("another process has been getting tokens for https://s"), "{error}");
        drop(held);
        tokens.lock_within("https://s", Duration::ZERO).await.unwrap();
    }

    #[tokio::test]
    async fn one_at_a_time_gets_tokens_for_a_server() {
        let (_folder, tokens) = tokens();
        let held = tokens.lock("https://s").await.unwrap();
        drop(tokens.lock("https://t").await.unwrap());
        let waiting = Arc::new(tokens.clone());
        let second = tokio::spawn(async move { waiting.lock("https://s").await.unwrap() });
        let still = tokio::time::timeout(LOCK_POLL * 3, tokens.lock("https://s")).await;
        assert!(still.is_err(), "it was given twice");
        drop(held);
        second.await.unwrap();
    }
}
