//! Skills: a `SKILL.md`, its files, and the entries and directories that follow from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use refmcp_proto::model::{
    self, DIRECTORY_TYPE, ReadResourceResult, ResourceContents, SkillResource, SkillResources,
};
use refmcp_proto::skill::{
    Digest, Document, MAX_BYTES, MAX_FILES, SKILL_FILE, is_prefix, relative_path, uri_of,
};

use super::Resource;
use crate::call::Call;
use crate::error::CallError;

/// What every URI of a skill begins with.
const SCHEME: &str = "skill://";

/// The media type of `SKILL.md`.
const MARKDOWN: &str = "text/markdown";

/// A skill: a directory with a `SKILL.md`, as values. Its files are resources below `skill://`, and its entry has their digests.
///
/// ```
/// use refmcp_server::{Server, Skill};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let skill = Skill::new("---\nname: refunds\ndescription: Pays money back\n---\nSee [the mail](examples/mail.md).\n")
///     .under("acme/billing")
///     .file("examples/mail.md", "text/markdown", "Dear customer, …\n");
/// let server = Server::builder("shop", "1.0").skill(skill).build()?;
/// assert!(server.catalog().has_resource("skill://acme/billing/refunds/examples/mail.md"));
/// # Ok(()) }
/// ```
///
/// A `SKILL.md` further down is a skill of its own besides: its files belong to both.
#[derive(Clone)]
#[must_use]
pub struct Skill {
    prefix: String,
    files: Vec<(String, SkillFile)>,
}

/// A file of a skill.
#[derive(Clone)]
enum SkillFile {
    /// These bytes.
    Fixed { mime_type: Option<String>, bytes: Bytes },
    /// What a function makes of each request.
    Generated(Box<Resource>),
}

/// Why a skill cannot be offered: its author's mistakes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("skill {name}: {why}")]
pub struct InvalidSkill {
    /// The skill, as far as it has a name.
    pub name: String,
    /// What is wrong.
    pub why: String,
}

/// A skill that can be offered.
#[derive(Debug)]
pub(crate) struct CompiledSkill {
    /// The URI of its directory.
    root: String,
    /// Its own entry, and those of skills further down.
    pub(crate) entries: Vec<model::Skill>,
    /// Its files, by their URIs.
    pub(crate) resources: Vec<Resource>,
    directories: Directories,
}

/// What is directly in each directory, by their URIs.
type Directories = BTreeMap<String, Vec<model::Resource>>;

impl Skill {
    /// A skill with this `SKILL.md`. Its name is the one at the top of the text.
    pub fn new(text: impl Into<Bytes>) -> Self {
        Self { prefix: String::new(), files: Vec::new() }.file(SKILL_FILE, MARKDOWN, text)
    }

    /// Puts the skill under a path, such as `acme/billing`.
    pub fn under(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Adds a file by its path in the skill. What is UTF-8 is sent as text.
    pub fn file(
        mut self,
        path: impl Into<String>,
        mime_type: impl Into<String>,
        bytes: impl Into<Bytes>,
    ) -> Self {
        let file = SkillFile::Fixed { mime_type: Some(mime_type.into()), bytes: bytes.into() };
        self.files.push((path.into(), file));
        self
    }

    /// Adds a file whose media type is not known.
    pub fn untyped_file(mut self, path: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        self.files.push((path.into(), SkillFile::Fixed { mime_type: None, bytes: bytes.into() }));
        self
    }

    /// Adds a file that a function makes for each request. The skill is dynamic then: no digest holds for it.
    pub fn generated<O, F, Fut>(mut self, path: impl Into<String>, read: F) -> Self
    where
        O: Into<ReadResourceResult>,
        F: Fn(Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, CallError>> + Send + 'static,
    {
        self.files.push((path.into(), SkillFile::Generated(Box::new(Resource::new("", "", read)))));
        self
    }

    /// Makes what is offered of it.
    pub(crate) fn compile(self) -> Result<CompiledSkill, InvalidSkill> {
        let text = self.files.first().map(|(_, file)| file.bytes()).unwrap_or_default();
        let nameless = |why: String| InvalidSkill { name: "without a name".to_owned(), why };
        let text = std::str::from_utf8(&text).map_err(|_| nameless(format!("{SKILL_FILE} is not UTF-8")))?;
        let document = Document::parse(text).map_err(|error| nameless(format!("{SKILL_FILE}: {error}")))?;
        let name = document.name().to_owned();
        self.compile_named(&name).map_err(|why| InvalidSkill { name, why })
    }

    fn compile_named(&self, name: &str) -> Result<CompiledSkill, String> {
        if !is_prefix(&self.prefix) {
            return Err(format!(
                "it cannot be put under {:?}; write names between slashes, of letters, digits, '-', '.', '_' and '~'",
                self.prefix
            ));
        }
        let path = if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) };
        let root = format!("{SCHEME}{path}");
        let files = self.files_by_path(&root)?;
        let mut entries = Vec::new();
        for path in files.keys() {
            if let Some(directory) = path.strip_suffix(SKILL_FILE)
                && (directory.is_empty() || directory.ends_with('/'))
            {
                entries.push(entry(&root, directory, &files).map_err(|why| format!("{path}: {why}"))?);
            }
        }
        // The skill itself stands before those in it.
        entries.sort_by_key(|entry| entry.uri.len());
        let resources: Vec<Resource> =
            files.iter().map(|(path, file)| file.resource(&root, path, &entries)).collect();
        let directories = directories(&root, &files, &resources);
        Ok(CompiledSkill { root, entries, resources, directories })
    }

    fn files_by_path(&self, root: &str) -> Result<BTreeMap<&str, &SkillFile>, String> {
        let mut files = BTreeMap::new();
        for (path, file) in &self.files {
            if relative_path(root, &uri_of(root, path)).as_deref() != Some(path) {
                return Err(format!("{path:?} is no path of a file in it; write names between slashes"));
            }
            if files.insert(path.as_str(), file).is_some() {
                return Err(format!("the file {path} is there twice"));
            }
        }
        let mut parents = files.keys().flat_map(|path| parents(path));
        if let Some(path) = parents.find(|parent| files.contains_key(parent)) {
            return Err(format!("{path} is a file and a directory"));
        }
        let bytes: u64 = files.values().map(|file| file.bytes().len() as u64).sum();
        if files.len() > MAX_FILES || bytes > MAX_BYTES {
            return Err(format!(
                "it has more than {MAX_FILES} files or {} MiB, which hosts may decline; split it",
                MAX_BYTES >> 20
            ));
        }
        Ok(files)
    }
}

impl SkillFile {
    fn bytes(&self) -> Bytes {
        match self {
            Self::Fixed { bytes, .. } => bytes.clone(),
            Self::Generated(_) => Bytes::new(),
        }
    }

    fn resource(&self, root: &str, path: &str, entries: &[model::Skill]) -> Resource {
        let uri = uri_of(root, path);
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        let mut resource = match self {
            Self::Generated(resource) => Resource::clone(resource),
            Self::Fixed { mime_type, bytes } => {
                let contents = contents(&uri, mime_type.as_deref(), bytes);
                let read = move |_| {
                    let contents = contents.clone();
                    async move { Ok(ResourceContents::clone(&contents)) }
                };
                let mut resource = Resource::new("", "", read).size(bytes.len() as u64);
                resource.definition.mime_type = mime_type.clone();
                resource
            }
        };
        let text =
            |entry: &model::Skill, field: &str| entry.frontmatter.get(field)?.as_str().map(str::to_owned);
        let entry = entries.iter().find(|entry| entry.uri == uri);
        resource.definition.name = entry.and_then(|entry| text(entry, "name")).unwrap_or(name);
        resource.definition.description = entry.and_then(|entry| text(entry, "description"));
        let skill = root.rsplit('/').next().unwrap_or_default();
        resource.definition.title = Some(format!("{skill}/{path}"));
        resource.definition.uri = uri;
        resource
    }
}

/// What is read at the URI of a file.
fn contents(uri: &str, mime_type: Option<&str>, bytes: &Bytes) -> Arc<ResourceContents> {
    let contents = match std::str::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(uri, text),
        Err(_) => ResourceContents::blob(uri, STANDARD.encode(bytes)),
    };
    Arc::new(ResourceContents { mime_type: mime_type.map(str::to_owned), ..contents })
}

/// The entry of the skill in a directory of the skill at this URI.
fn entry(root: &str, directory: &str, files: &BTreeMap<&str, &SkillFile>) -> Result<model::Skill, String> {
    let path = format!("{directory}{SKILL_FILE}");
    let uri = uri_of(root, &path);
    let bytes = files.get(path.as_str()).map(|file| file.bytes()).unwrap_or_default();
    let text = std::str::from_utf8(&bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let document = Document::parse(text).map_err(|error| error.to_string())?;
    let parent = uri.strip_suffix(SKILL_FILE).and_then(|parent| parent.strip_suffix('/'));
    if parent.and_then(|parent| parent.rsplit('/').next()) != Some(document.name()) {
        return Err(format!("its directory has to be called {}, as the skill", document.name()));
    }
    let own = || files.iter().filter(|(path, _)| path.starts_with(directory));
    let is_dynamic = own().any(|(_, file)| matches!(file, SkillFile::Generated(_)));
    let resource = |(path, file): (&&str, &&SkillFile)| {
        let bytes = file.bytes();
        SkillResource::new(uri_of(root, path), Digest::of(&bytes).to_string(), bytes.len() as u64)
    };
    let resources = match is_dynamic {
        true => SkillResources::Dynamic,
        false => SkillResources::Files(own().map(resource).collect()),
    };
    Ok(model::Skill::new(uri, document.frontmatter, resources))
}

/// The directories that a path is in.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

fn directories(root: &str, files: &BTreeMap<&str, &SkillFile>, resources: &[Resource]) -> Directories {
    let all: BTreeSet<&str> = files.keys().flat_map(|path| parents(path)).collect();
    let uri = |directory: &str| match directory {
        "" => root.to_owned(),
        directory => uri_of(root, directory),
    };
    let mut directories: Directories = all.iter().chain([&""]).map(|path| (uri(path), Vec::new())).collect();
    let mut put = |path: &str, resource: model::Resource| {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        directories.entry(uri(parent)).or_default().push(resource);
    };
    for path in &all {
        let name = path.rsplit('/').next().unwrap_or(path);
        put(path, model::Resource::new(uri(path), name).mime_type(DIRECTORY_TYPE));
    }
    for (path, resource) in files.keys().zip(resources) {
        put(path, resource.definition.clone());
    }
    directories
}

impl CompiledSkill {
    /// The URI of its `SKILL.md`.
    pub(crate) fn uri(&self) -> String {
        uri_of(&self.root, SKILL_FILE)
    }

    /// The URIs of its files.
    pub(crate) fn resource_uris(&self) -> impl Iterator<Item = &str> {
        self.resources.iter().map(|resource| resource.definition.uri.as_str())
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.root.rsplit('/').next().unwrap_or_default()
    }

    /// Whether one lies in the directory of the other.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let is_in =
            |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
        is_in(&self.root, &other.root) || is_in(&other.root, &self.root)
    }

    /// The URIs of files that are new, gone, or have other bytes than before.
    pub(crate) fn changed_files(&self, before: Option<&Self>) -> Vec<String> {
        let digests = |skill: &Self| -> BTreeMap<String, Option<String>> {
            let files = skill.resources.iter().map(|resource| (resource.definition.uri.clone(), None));
            let listed = skill.entries.first().map(|entry| &entry.resources);
            let listed = match listed {
                Some(SkillResources::Files(files)) => files.as_slice(),
                _ => &[],
            };
            files.chain(listed.iter().map(|file| (file.uri.clone(), Some(file.digest.clone())))).collect()
        };
        let (old, new) = (before.map(digests).unwrap_or_default(), digests(self));
        let uris: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        uris.into_iter().filter(|uri| old.get(*uri) != new.get(*uri)).cloned().collect()
    }

    /// What is directly in a directory of it.
    pub(crate) fn directory(&self, uri: &str) -> Option<&[model::Resource]> {
        self.directories.get(uri).map(Vec::as_slice)
    }
}

impl fmt::Debug for Skill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<&str> = self.files.iter().map(|(path, _)| path.as_str()).collect();
        f.debug_struct("Skill").field("prefix", &self.prefix).field("files", &files).finish()
    }
}

#[cfg(test)]
mod tests;
