//! A checked entry of a skill, and the verification of what is read of it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::document::{Document, DocumentError, check_fields, text};
use super::uri::{SKILL_FILE, relative_path};
use super::{Digest, MAX_BYTES, MAX_FILES};
use crate::model::{JsonObject, ResourceBody, ResourceContents, Skill, SkillResources};

/// An entry of a skill that makes sense in itself.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillEntry {
    skill: Skill,
    /// The URI of its directory.
    root: String,
    /// The files by URI; none where they change by themselves.
    files: Option<BTreeMap<String, FileEntry>>,
}

/// What an entry says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileEntry {
    path: String,
    digest: Digest,
    size: u64,
}

/// What is wrong with an entry, or with what was read of a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillEntryError {
    /// The entry contradicts itself or the specification.
    #[error("the server's entry of {uri} is wrong: {why}")]
    Entry {
        /// The skill, as far as the entry names it.
        uri: String,
        /// What is wrong.
        why: String,
    },
    /// The skill is larger than hosts have to support.
    #[error("{uri} is declined: {why}")]
    TooLarge {
        /// The skill.
        uri: String,
        /// What is too large.
        why: String,
    },
    /// The entry does not list the file.
    #[error("{uri} is no file of the skill; the skill may have changed")]
    Unlisted {
        /// The file.
        uri: String,
    },
    /// What was read is no file.
    #[error("the server gave no content of {uri}: {why}")]
    Unreadable {
        /// The file.
        uri: String,
        /// What there was instead.
        why: String,
    },
    /// The file has another size.
    #[error("{uri} has {actual} bytes, and {expected} by its entry; the skill may have changed")]
    Size {
        /// The file.
        uri: String,
        /// By the entry.
        expected: u64,
        /// What was read.
        actual: u64,
    },
    /// The file has other bytes.
    #[error("{uri} has the digest {actual}, and {expected} by its entry; the skill may have changed")]
    Digest {
        /// The file.
        uri: String,
        /// By the entry.
        expected: Digest,
        /// Of what was read.
        actual: Digest,
    },
    /// The fields at the top of the file are not those of the entry.
    #[error("the front matter of {uri} is not that of its entry: {why}")]
    FrontMatter {
        /// The file.
        uri: String,
        /// The field that differs, or why there are none.
        why: String,
    },
}

impl SkillEntryError {
    /// One word for what is wrong, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Entry { .. } => "entry",
            Self::TooLarge { .. } => "too_large",
            Self::Unlisted { .. } => "unlisted",
            Self::Unreadable { .. } => "unreadable",
            Self::Size { .. } => "size",
            Self::Digest { .. } => "digest",
            Self::FrontMatter { .. } => "frontmatter",
        }
    }

    /// The skill or file that it is about.
    pub fn uri(&self) -> &str {
        match self {
            Self::Entry { uri, .. }
            | Self::TooLarge { uri, .. }
            | Self::Unlisted { uri }
            | Self::Unreadable { uri, .. }
            | Self::Size { uri, .. }
            | Self::Digest { uri, .. }
            | Self::FrontMatter { uri, .. } => uri,
        }
    }
}

/// A file whose bytes are those of its entry. There is no other way to make one than [`SkillEntry::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedFile {
    uri: String,
    path: String,
    bytes: Vec<u8>,
    has_digest: bool,
}

impl SkillEntry {
    /// Checks an entry.
    ///
    /// # Errors
    /// It contradicts itself or the specification, or the skill is too large.
    pub fn check(skill: Skill) -> Result<Self, SkillEntryError> {
        let wrong = |why: String| SkillEntryError::Entry { uri: skill.uri.clone(), why };
        let root = skill.uri.strip_suffix(SKILL_FILE).and_then(|root| root.strip_suffix('/'));
        let root = root.filter(|root| root.contains("://"));
        let Some(root) = root else { return Err(wrong(format!("its URI does not end in /{SKILL_FILE}"))) };
        check_fields(&skill.frontmatter).map_err(wrong)?;
        if root.rsplit('/').next() != Some(text(&skill.frontmatter, "name")) {
            return Err(wrong("its directory is not called like the skill".to_owned()));
        }
        let files = match &skill.resources {
            SkillResources::Dynamic => None,
            SkillResources::Files(_) => Some(files(&skill, root)?),
        };
        let root = root.to_owned();
        Ok(Self { skill, root, files })
    }

    /// The entry as the server sent it.
    pub fn skill(&self) -> &Skill {
        &self.skill
    }

    /// The URI of `SKILL.md`.
    pub fn uri(&self) -> &str {
        &self.skill.uri
    }

    /// The URI of the directory.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The name.
    pub fn name(&self) -> &str {
        text(&self.skill.frontmatter, "name")
    }

    /// What the skill is for, by its author.
    pub fn description(&self) -> &str {
        text(&self.skill.frontmatter, "description")
    }

    /// Whether the bytes of the skill change by themselves: no digest holds for them.
    pub fn is_dynamic(&self) -> bool {
        self.files.is_none()
    }

    /// The files: URI, path in the skill and digest.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str, Digest)> {
        let files = self.files.iter().flatten();
        files.map(|(uri, file)| (uri.as_str(), file.path.as_str(), file.digest))
    }

    /// The bytes of all files by the entry.
    pub fn size(&self) -> u64 {
        self.files.iter().flatten().fold(0, |total, (_, file)| total.saturating_add(file.size))
    }

    /// The URI of a file by its path in the skill.
    ///
    /// # Errors
    /// The skill has no such file.
    pub fn file_uri(&self, path: &str) -> Result<String, SkillEntryError> {
        let uri = super::uri_of(&self.root, path);
        match &self.files {
            None if relative_path(&self.root, &uri).is_some() => return Ok(uri),
            None => {}
            Some(files) => {
                if let Some((uri, _)) = files.iter().find(|(_, file)| file.path == path) {
                    return Ok(uri.clone());
                }
            }
        }
        Err(SkillEntryError::Unlisted { uri })
    }

    /// Verifies what was read at a URI: that the skill has such a file, its size, its digest, and for `SKILL.md` its front
    /// matter, field by field. Where the skill is dynamic, there is no size and no digest to compare with.
    ///
    /// # Errors
    /// What does not fit.
    #[doc(alias = "digest")]
    pub fn verify(&self, uri: &str, contents: &ResourceContents) -> Result<VerifiedFile, SkillEntryError> {
        let unlisted = || SkillEntryError::Unlisted { uri: uri.to_owned() };
        let expected = match &self.files {
            Some(files) => Some(files.get(uri).ok_or_else(unlisted)?),
            None => None,
        };
        let path = match expected {
            Some(file) => file.path.clone(),
            None => relative_path(&self.root, uri).ok_or_else(unlisted)?,
        };
        let unreadable = |why: &str| SkillEntryError::Unreadable { uri: uri.to_owned(), why: why.to_owned() };
        if contents.uri != uri {
            return Err(unreadable("what it gave has another URI"));
        }
        let bytes = match &contents.body {
            ResourceBody::Text(text) => text.clone().into_bytes(),
            // The size that base64 can have is known before it is decoded.
            ResourceBody::Blob(blob) if blob.len() as u64 > 2 * MAX_BYTES => {
                return Err(SkillEntryError::TooLarge { uri: uri.to_owned(), why: too_many_bytes() });
            }
            ResourceBody::Blob(blob) => STANDARD.decode(blob).map_err(|_| unreadable("it is no base64"))?,
        };
        let actual = bytes.len() as u64;
        match expected {
            Some(file) if file.size != actual => {
                return Err(SkillEntryError::Size { uri: uri.to_owned(), expected: file.size, actual });
            }
            Some(file) => {
                let (expected, actual) = (file.digest, Digest::of(&bytes));
                if expected != actual {
                    return Err(SkillEntryError::Digest { uri: uri.to_owned(), expected, actual });
                }
            }
            None if actual > MAX_BYTES => {
                return Err(SkillEntryError::TooLarge { uri: uri.to_owned(), why: too_many_bytes() });
            }
            None => {}
        }
        if uri == self.skill.uri {
            self.verify_front_matter(&bytes)?;
        }
        Ok(VerifiedFile { uri: uri.to_owned(), path, bytes, has_digest: expected.is_some() })
    }

    fn verify_front_matter(&self, bytes: &[u8]) -> Result<(), SkillEntryError> {
        let fault = |why: String| SkillEntryError::FrontMatter { uri: self.skill.uri.clone(), why };
        let text = std::str::from_utf8(bytes).map_err(|_| fault("the file is not UTF-8".to_owned()))?;
        let document = Document::parse(text).map_err(|error: DocumentError| fault(error.to_string()))?;
        match difference(&self.skill.frontmatter, &document.frontmatter) {
            None => Ok(()),
            Some(field) => Err(fault(format!("the field {field:?} differs"))),
        }
    }
}

fn too_many_bytes() -> String {
    format!("it has more than {} MiB", MAX_BYTES >> 20)
}

/// The files of an entry, checked.
fn files(skill: &Skill, root: &str) -> Result<BTreeMap<String, FileEntry>, SkillEntryError> {
    let SkillResources::Files(listed) = &skill.resources else { return Ok(BTreeMap::new()) };
    let wrong = |why: String| SkillEntryError::Entry { uri: skill.uri.clone(), why };
    let too_large = |why: String| SkillEntryError::TooLarge { uri: skill.uri.clone(), why };
    if listed.len() > MAX_FILES {
        return Err(too_large(format!("it has more than {MAX_FILES} files")));
    }
    let (mut files, mut paths, mut total) = (BTreeMap::new(), BTreeSet::new(), 0_u64);
    for file in listed {
        let path = relative_path(root, &file.uri)
            .ok_or_else(|| wrong(format!("the file {} is not in its directory", file.uri)))?;
        let digest = file.digest.parse().map_err(|error| wrong(format!("the file {}: {error}", file.uri)))?;
        if !paths.insert(path.clone()) {
            return Err(wrong(format!("the file {} is there twice", file.uri)));
        }
        total = total.saturating_add(file.size);
        files.insert(file.uri.clone(), FileEntry { path, digest, size: file.size });
    }
    if !files.contains_key(&skill.uri) {
        return Err(wrong(format!("its files lack {SKILL_FILE}")));
    }
    if total > MAX_BYTES {
        return Err(too_large(too_many_bytes()));
    }
    Ok(files)
}

/// The first field that differs.
fn difference(one: &JsonObject, other: &JsonObject) -> Option<String> {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    names.into_iter().find(|name| !are_equal(one.get(*name), other.get(*name))).cloned()
}

fn are_equal(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => difference(one, other).is_none(),
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| are_equal(Some(one), Some(other)))
        }
        // 1.0 and 1 are the same number, and writers of JSON choose.
        (Some(Value::Number(one)), Some(Value::Number(other))) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        _ => one == other,
    }
}

impl VerifiedFile {
    /// The URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The path in the skill: no part of it is `..`, empty or reserved.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes as text, if they are UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }

    /// Whether there was a digest to compare with: dynamic skills have none.
    pub fn has_digest(&self) -> bool {
        self.has_digest
    }
}

#[cfg(test)]
mod tests;
