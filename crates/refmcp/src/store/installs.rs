//! What `refmcp install` changed in configuration files, so that it can be undone. Of a file, only the previous entry of
//! the server and white space that changed are kept: the entries of other servers may hold secrets.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::folder::StateFolder;
use crate::args::sha256_hex;

/// The file of changes.
const FILE: &str = "installs.json";

/// Changes that are kept; of more, the oldest go.
const MAX_CHANGES: usize = 200;

/// Bytes of all changes that are kept.
const MAX_BYTES: usize = 8 << 20;

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

/// The text before the change, as edits of the text after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Before {
    /// The edits, in the order of the text.
    #[serde(default)]
    edits: Vec<Edit>,
    /// The SHA-256 of the file before the change.
    sha256: String,
}

/// A part of the text that is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Edit {
    /// The byte at which the part begins in the text after the change.
    start: usize,
    /// The bytes of the part.
    length: usize,
    /// The text that stood in its place.
    text: String,
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
        let before = before
            .map(|before| Before { edits: edits(before, after), sha256: sha256_hex(before.as_bytes()) });
        let (file, server) = (file.to_owned(), server.to_owned());
        Self { file, server, before, after_sha256: sha256_hex(after.as_bytes()), folders }
    }

    /// The text that was there before; `Some(None)` when there was no file, `None` when it cannot be told.
    pub(crate) fn undone(&self, after: &str) -> Option<Option<String>> {
        let Some(before) = &self.before else { return Some(None) };
        let (mut text, mut end) = (String::with_capacity(after.len()), 0);
        for edit in &before.edits {
            text.push_str(after.get(end..edit.start)?);
            text.push_str(&edit.text);
            end = edit.start.checked_add(edit.length)?;
        }
        text.push_str(after.get(end..)?);
        (sha256_hex(text.as_bytes()) == before.sha256).then_some(Some(text))
    }
}

/// How to get from `after` to `before`. Both texts are compared without white space and commas, from both ends up to what
/// really differs; of what both have, only a change of the layout is an edit.
fn edits(before: &str, after: &str) -> Vec<Edit> {
    let content = |text: &str| -> Vec<(usize, char)> {
        text.char_indices().filter(|(_, c)| !c.is_whitespace() && *c != ',').collect()
    };
    let (old, new) = (content(before), content(after));
    let is_same = |pair: &(&(usize, char), &(usize, char))| pair.0.1 == pair.1.1;
    let head = old.iter().zip(&new).take_while(is_same).count();
    let tail = old.iter().skip(head).rev().zip(new.iter().skip(head).rev()).take_while(is_same).count();
    let common = |content: &[(usize, char)], end: usize| -> Vec<(usize, usize)> {
        let (before_tail, all) = (content.len() - tail, content.iter().enumerate());
        let common = all.filter(|(index, _)| *index < head || *index >= before_tail);
        common.map(|(_, (at, c))| (*at, at + c.len_utf8())).chain([(end, end)]).collect()
    };
    let (mut old_end, mut new_end, mut edits) = (0, 0, Vec::new());
    for (old, new) in common(&old, before.len()).into_iter().zip(common(&new, after.len())) {
        let text = before.get(old_end..old.0).unwrap_or_default();
        if after.get(new_end..new.0) != Some(text) {
            edits.push(Edit { start: new_end, length: new.0 - new_end, text: text.to_owned() });
        }
        (old_end, new_end) = (old.1, new.1);
    }
    edits
}

/// The changes of a file, the oldest first.
pub(crate) fn of_file(folder: &StateFolder, file: &Path) -> Result<Vec<Change>> {
    Ok(load(folder)?.into_iter().filter(|change| change.file == file).collect())
}

/// The latest change of a file after which its text was this.
pub(crate) fn latest<'a>(changes: &'a [Change], text: &str) -> Option<&'a Change> {
    let sha256 = sha256_hex(text.as_bytes());
    changes.iter().rev().find(|change| change.after_sha256 == sha256)
}

/// Keeps a change, and then makes it: one that fails is not kept.
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
        let edits = change.before.iter().flat_map(|before| &before.edits);
        edits.map(|edit| edit.text.len()).sum::<usize>() + change.file.as_os_str().len()
    };
    let mut bytes: usize = changes.iter().map(size).sum();
    while changes.len() > MAX_CHANGES || (bytes > MAX_BYTES && changes.len() > 1) {
        bytes -= size(&changes.remove(0));
    }
    folder.replace(FILE, &serde_json::to_vec(changes).context("cannot write down the change")?)
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
    fn of_other_servers_nothing_is_kept() {
        let other = r#""other": {"env": {"KEY": "SECRET"}, "args": ["a", "b"]}"#;
        let laid_out = "\"other\": {\n  \"env\": {\n  \"KEY\": \"SECRET\"\n}, \"args\": [\n\"a\",\n\"b\"]\n}";
        for (before, after) in [
            (format!("{{{other}}}"), format!("{{\n  {laid_out},\n  \"new\": {{\"x\": \"OURS\"}}\n}}\n")),
            (format!("{{\"new\": \"MINE\", {other}}}"), format!("{{\n\"new\": \"OURS\",\n{laid_out}}}")),
            (format!("{{{other} // SECRET\n}}"), format!("{{{laid_out}, // SECRET\n\"new\": \"OURS\"\n}}")),
        ] {
            let change = change(Some(&before), &after);
            assert_eq!(change.undone(&after), Some(Some(before)));
            let kept = serde_json::to_string(&change).unwrap();
            assert!(!kept.contains("SECRET") && !kept.contains("KEY") && !kept.contains("OURS"), "{kept}");
        }
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
        let mut many: Vec<Change> =
            (0..MAX_CHANGES + 1).map(|number| change(None, &number.to_string())).collect();
        save(&folder, &mut many).unwrap();
        assert_eq!(load(&folder).unwrap().len(), MAX_CHANGES);
        let long = "x".repeat(MAX_BYTES / 2 + 1);
        let mut long: Vec<Change> = ["1", "2"].map(|after| change(Some(&long), after)).to_vec();
        save(&folder, &mut long).unwrap();
        assert_eq!(load(&folder).unwrap().len(), 1);
    }
}
