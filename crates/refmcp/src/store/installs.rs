//! What `refmcp install` changed in configuration files, so that it can be undone. Only the part that changed is kept,
//! since the rest of a file may hold secrets.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use ring::digest;
use serde::{Deserialize, Serialize};

use super::folder::StateFolder;

/// The file of changes.
const FILE: &str = "installs.json";

/// Changes that are kept; of more, the oldest go.
const MOST: usize = 200;

/// Bytes of all changes that are kept.
const MOST_BYTES: usize = 8 << 20;

/// A change of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// The file's real path.
    pub(crate) file: PathBuf,
    /// The server whose entry was written.
    pub(crate) server: String,
    /// How to get back to what was there; `None` when there was no file.
    pub(crate) before: Option<Before>,
    /// The SHA-256 of the file after the change.
    pub(crate) after_sha256: String,
    /// Folders that were made for the file, the outermost first.
    pub(crate) folders: Vec<PathBuf>,
}

/// The text that was there, as what to do to the one that came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Before {
    /// From which byte on the two differ.
    start: usize,
    /// How many bytes came.
    added: usize,
    /// The text that was there instead.
    removed: String,
    /// The SHA-256 of the file before the change.
    sha256: String,
}

impl Change {
    /// The change of a file from one text to another.
    pub(crate) fn new(
        file: &Path,
        server: &str,
        before: Option<&str>,
        after: &str,
        folders: Vec<PathBuf>,
    ) -> Self {
        let before = before.map(|before| {
            let common = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
            let start = (0..=common).rev().find(|at| before.is_char_boundary(*at)).unwrap_or(0);
            let room = before.len().min(after.len()) - start;
            let tail = before.bytes().rev().zip(after.bytes().rev());
            let common = tail.take(room).take_while(|(one, other)| one == other).count();
            let tail = (0..=common).rev().find(|back| before.is_char_boundary(before.len() - back));
            let tail = tail.unwrap_or(0);
            let removed = before.get(start..before.len() - tail).unwrap_or_default().to_owned();
            Before { start, added: after.len() - tail - start, removed, sha256: sha256(before) }
        });
        let (file, server) = (file.to_owned(), server.to_owned());
        Self { file, server, before, after_sha256: sha256(after), folders }
    }

    /// The text that was there before; `Some(None)` when there was no file, `None` when it cannot be told.
    pub(crate) fn undone(&self, after: &str) -> Option<Option<String>> {
        let Some(before) = &self.before else { return Some(None) };
        let head = after.get(..before.start)?;
        let tail = after.get(before.start.checked_add(before.added)?..)?;
        let text = format!("{head}{}{tail}", before.removed);
        (sha256(&text) == before.sha256).then_some(Some(text))
    }
}

/// The changes of a file, the oldest first.
///
/// # Errors
///
/// What is kept cannot be read.
pub(crate) fn of_file(folder: &StateFolder, file: &Path) -> Result<Vec<Change>> {
    Ok(load(folder)?.into_iter().filter(|change| change.file == file).collect())
}

/// The latest change of a file after which its text was this.
pub(crate) fn latest<'a>(changes: &'a [Change], text: &str) -> Option<&'a Change> {
    let sha256 = sha256(text);
    changes.iter().rev().find(|change| change.after_sha256 == sha256)
}

/// Keeps a change, and then makes it: one that fails is not kept.
///
/// # Errors
///
/// It cannot be kept, or not be made.
pub(crate) fn keep(folder: &StateFolder, change: Change, make: impl FnOnce() -> Result<()>) -> Result<()> {
    let _locked = folder.lock()?;
    let before = load(folder)?;
    let mut changes = before.clone();
    changes.push(change);
    save(folder, &mut changes)?;
    make().inspect_err(|_| {
        // A change that was not made is passed over when it is looked for, so nothing is lost if this fails.
        let _ = save(folder, &mut before.clone());
    })
}

/// Makes the undoing of a change, and forgets it with all that came after it.
///
/// # Errors
///
/// It cannot be made, or not be forgotten.
pub(crate) fn forget(folder: &StateFolder, change: &Change, make: impl FnOnce() -> Result<()>) -> Result<()> {
    let _locked = folder.lock()?;
    let mut changes = load(folder)?;
    make()?;
    if let Some(at) = changes.iter().rposition(|kept| kept == change) {
        let mut index = 0;
        changes.retain(|kept| {
            index += 1;
            index <= at || kept.file != change.file
        });
    }
    save(folder, &mut changes)
}

fn load(folder: &StateFolder) -> Result<Vec<Change>> {
    let Some(content) = folder.read(FILE)? else { return Ok(Vec::new()) };
    serde_json::from_slice(&content).with_context(|| {
        format!(
            "{} is damaged; remove it, and nothing that was installed can be undone",
            folder.file(FILE).display()
        )
    })
}

fn save(folder: &StateFolder, changes: &mut Vec<Change>) -> Result<()> {
    let size = |change: &Change| {
        change.before.as_ref().map_or(0, |before| before.removed.len()) + change.file.as_os_str().len()
    };
    let mut bytes: usize = changes.iter().map(size).sum();
    while changes.len() > MOST || (bytes > MOST_BYTES && changes.len() > 1) {
        bytes -= size(&changes.remove(0));
    }
    folder.replace(FILE, &serde_json::to_vec(changes).context("cannot write down the change")?)
}

fn sha256(text: &str) -> String {
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: Option<&str>, after: &str) -> Change {
        Change::new(Path::new("/f"), "s", before, after, Vec::new())
    }

    #[test]
    fn what_was_there_comes_back() {
        for (before, after) in [
            ("", "new"),
            ("old", ""),
            ("aaa", "aaaa"),
            ("aaaa", "aaa"),
            ("{ a: 1 }", "{ a: 1, b: 2 }"),
            ("é", "è"),
            ("xéy", "xèy"),
            ("\u{20ac}", "\u{24ac}"),
            ("same", "same"),
        ] {
            assert_eq!(change(Some(before), after).undone(after), Some(Some(before.to_owned())), "{before}");
            assert_eq!(change(Some(before), after).undone("something else"), None, "{before}");
        }
        assert_eq!(change(None, "new").undone("new"), Some(None));
    }

    #[test]
    fn only_what_changed_is_kept() {
        let change = change(Some("SECRET, 1, SECRET"), "SECRET, 2, SECRET");
        assert!(!serde_json::to_string(&change).unwrap().contains("SECRET"));
    }

    #[test]
    fn changes_are_forgotten_from_the_latest_on() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let [first, second] = [change(None, "1"), change(Some("1"), "2")];
        keep(&folder, first.clone(), || Ok(())).unwrap();
        keep(&folder, second.clone(), || Ok(())).unwrap();
        assert!(keep(&folder, change(Some("2"), "3"), || anyhow::bail!("disk full")).is_err());
        let kept = of_file(&folder, Path::new("/f")).unwrap();
        assert_eq!(kept, [first.clone(), second.clone()], "what failed is not kept");
        assert_eq!(latest(&kept, "2"), Some(&second));
        assert_eq!(latest(&kept, "1"), Some(&first));
        assert_eq!(latest(&kept, "3"), None);
        let other = Change { file: "/g".into(), ..second.clone() };
        keep(&folder, other.clone(), || Ok(())).unwrap();
        assert!(forget(&folder, &first, || anyhow::bail!("disk full")).is_err());
        assert_eq!(of_file(&folder, Path::new("/f")).unwrap().len(), 2);
        forget(&folder, &first, || Ok(())).unwrap();
        assert_eq!(load(&folder).unwrap(), [other]);
    }

    #[test]
    fn only_so_many_are_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let mut many: Vec<Change> = (0..MOST + 1).map(|number| change(None, &number.to_string())).collect();
        save(&folder, &mut many).unwrap();
        assert_eq!(load(&folder).unwrap().len(), MOST);
        let long = "x".repeat(MOST_BYTES / 2 + 1);
        let mut long: Vec<Change> = ["1", "2"].map(|after| change(Some(&long), after)).to_vec();
        save(&folder, &mut long).unwrap();
        assert_eq!(load(&folder).unwrap().len(), 1);
    }
}
