//! Skills of a server: known by their entries, loaded once their `SKILL.md` is verified, read file by file.
//!
//! ```no_run
//! # async fn run(client: refmcp_client::Client) -> Result<(), refmcp_client::SkillError> {
//! for skill in client.skills().list().await?.skills {
//!     println!("{}: {}", skill.entry().name(), skill.entry().description());
//! }
//! let skill = client.skills().get("skill://refmcp/test-mcp-client/SKILL.md").await?;
//! let loaded = skill.load().await?;
//! println!("{}", loaded.text());
//! let tools = loaded.read("references/tools.md").await?;
//! println!("{}", tools.text().unwrap_or("no text"));
//! # Ok(())
//! # }
//! ```
//!
//! Nothing is fetched ahead: a list has entries, [`KnownSkill::load`] reads one file. What does not fit its entry becomes an error and
//! never a value, so that it cannot be shown or saved by mistake.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use refmcp_proto::model::{GetSkillParams, ReadResourceResult, Skill};
use refmcp_proto::revision::Method;
use refmcp_proto::skill::{MAX_BYTES, SkillEntry, SkillEntryError, VerifiedFile};
use serde::Deserialize;
use serde_json::Value;

use crate::client::Client;
use crate::error::Error;
use crate::list::Listable;
use crate::request::Request;

/// Why a skill cannot be had.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The server does not declare skills.
    #[error("the server declares no skills")]
    Undeclared,
    /// A request has no result.
    #[error(transparent)]
    Request(#[from] Error),
    /// What the server sent of a skill is wrong.
    #[error(transparent)]
    Fault(#[from] SkillEntryError),
}

/// The skills of a server.
#[derive(Debug, Clone)]
pub struct Skills {
    client: Client,
}

/// What a server lists. An empty list does not mean that there are no skills: [`Skills::get`] may find one by its URI.
#[derive(Debug, Default)]
pub struct SkillList {
    /// The skills.
    pub skills: Vec<KnownSkill>,
    /// What is wrong with the entries that are left out.
    pub refused: Vec<SkillEntryError>,
}

/// A skill whose entry makes sense. Nothing of it was fetched.
#[derive(Debug, Clone)]
pub struct KnownSkill {
    client: Client,
    entry: Arc<SkillEntry>,
}

/// A skill whose `SKILL.md` was read and verified. Its files are read by the entry that it was loaded with.
#[derive(Debug)]
pub struct LoadedSkill {
    skill: KnownSkill,
    document: VerifiedFile,
    /// Bytes that were read of it, which for dynamic skills no entry limits.
    read: AtomicU64,
}

impl Client {
    /// The server's skills.
    #[doc(alias = "skills/list")]
    #[doc(alias = "skills/get")]
    pub fn skills(&self) -> Skills {
        Skills { client: self.clone() }
    }
}

impl Skills {
    /// The skills that the server lists, all pages.
    ///
    /// # Errors
    /// The server declares no skills; and as [`Client::list_tools`].
    pub async fn list(&self) -> Result<SkillList, SkillError> {
        self.check_declared()?;
        let mut list = SkillList::default();
        for listed in self.client.pages::<ListedSkill>().all().await? {
            match listed.entry {
                Ok(entry) => list.skills.push(self.known(entry)),
                Err(fault) => list.refused.push(fault),
            }
        }
        Ok(list)
    }

    /// The skill with this `SKILL.md`, listed or not.
    ///
    /// # Errors
    /// The server declares no skills, has none at the URI, or its entry is wrong.
    pub async fn get(&self, uri: &str) -> Result<KnownSkill, SkillError> {
        #[derive(Deserialize)]
        struct Found {
            skill: Value,
        }
        self.check_declared()?;
        let request = Request::<Found>::new(&self.client, Method::GetSkill.name(), &GetSkillParams::new(uri));
        let entry = read_entry(request.await?.skill)?;
        if entry.uri() != uri {
            let why = format!("it came for {uri}");
            return Err(SkillEntryError::Entry { uri: entry.uri().to_owned(), why }.into());
        }
        Ok(self.known(entry))
    }

    fn known(&self, entry: SkillEntry) -> KnownSkill {
        KnownSkill { client: self.client.clone(), entry: Arc::new(entry) }
    }

    fn check_declared(&self) -> Result<(), SkillError> {
        let is_declared = Method::ListSkills.is_offered(&self.client.server().capabilities);
        if is_declared { Ok(()) } else { Err(SkillError::Undeclared) }
    }
}

impl KnownSkill {
    /// What the server says of it.
    pub fn entry(&self) -> &SkillEntry {
        &self.entry
    }

    /// Reads its `SKILL.md`, and nothing else.
    ///
    /// # Errors
    /// It cannot be read, or is not what the entry says.
    pub async fn load(&self) -> Result<LoadedSkill, SkillError> {
        let document = self.fetch(self.entry.uri()).await?;
        let read = AtomicU64::new(document.bytes().len() as u64);
        Ok(LoadedSkill { skill: self.clone(), document, read })
    }

    /// Reads a file and verifies it. A cached result would be verified again, but might be older than the entry.
    async fn fetch(&self, uri: &str) -> Result<VerifiedFile, SkillError> {
        let result: ReadResourceResult = self.client.read_resource(uri).fresh().await?;
        match result.contents.as_slice() {
            [contents] => Ok(self.entry.verify(uri, contents)?),
            contents => {
                let why = format!("there are {} contents and not one", contents.len());
                Err(SkillEntryError::Unreadable { uri: uri.to_owned(), why }.into())
            }
        }
    }
}

impl LoadedSkill {
    /// The entry that it was loaded with.
    pub fn entry(&self) -> &SkillEntry {
        &self.skill.entry
    }

    /// Its `SKILL.md`.
    pub fn document(&self) -> &VerifiedFile {
        &self.document
    }

    /// The text of its `SKILL.md`.
    pub fn text(&self) -> &str {
        self.document.text().unwrap_or_default()
    }

    /// Reads a file by its path in the skill.
    ///
    /// # Errors
    /// The entry has no such file, it cannot be read, or it is not what the entry says.
    pub async fn read(&self, path: &str) -> Result<VerifiedFile, SkillError> {
        let uri = self.entry().file_uri(path)?;
        let file = self.skill.fetch(&uri).await?;
        let size = file.bytes().len() as u64;
        let read = self.read.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if self.entry().is_dynamic() && read > MAX_BYTES {
            let why = format!("more than {} MiB of it were read", MAX_BYTES >> 20);
            return Err(SkillEntryError::TooLarge { uri: self.entry().uri().to_owned(), why }.into());
        }
        Ok(file)
    }
}

/// An item of `skills/list`. One that is wrong does not keep the others from being read.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedSkill {
    /// The URI that it has.
    pub uri: String,
    /// The name that it has.
    pub name: String,
    /// The entry, or what is wrong with it.
    pub entry: Result<SkillEntry, SkillEntryError>,
}

/// A page of skills.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[doc(hidden)]
pub struct ListedSkillsPage {
    skills: Vec<Value>,
    next_cursor: Option<String>,
}

impl Listable for ListedSkill {
    type Page = ListedSkillsPage;
    const METHOD: Method = Method::ListSkills;

    fn into_items(page: ListedSkillsPage) -> (Vec<Self>, Option<String>) {
        let listed = |skill: Value| {
            let text =
                |pointer: &str| skill.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (uri, name) = (text("/uri"), text("/frontmatter/name"));
            Self { uri, name, entry: read_entry(skill) }
        };
        (page.skills.into_iter().map(listed).collect(), page.next_cursor)
    }
}

fn read_entry(entry: Value) -> Result<SkillEntry, SkillEntryError> {
    let uri = entry.get("uri").and_then(Value::as_str).unwrap_or("a skill without a URI").to_owned();
    let skill = serde_json::from_value::<Skill>(entry);
    let skill = skill.map_err(|error| SkillEntryError::Entry { uri, why: error.to_string() })?;
    SkillEntry::check(skill)
}
