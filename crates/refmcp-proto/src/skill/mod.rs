//! Skills: `SKILL.md` files, manifests with digests, and their verification.
//!
//! | file | what it has |
//! |---|---|
//! | `document` | `SKILL.md`: its front matter and its body |
//! | `digest` | SHA-256 of bytes, as manifests write it |
//! | `uri` | URIs of skills and of the files in them |
//! | `entry` | a checked entry of `skills/list` or `skills/get`, which verifies what is read of its skill |
//! | `approval` | the files that a user has approved |
//!
//! What a server says of a skill is a claim. A [`SkillEntry`] exists only where the claim makes sense in itself, a
//! [`VerifiedFile`] only where bytes that were read are those of the entry. Neither says that the server is honest.
//!
//! ```
//! use refmcp_proto::model::{ResourceContents, Skill, SkillResource, SkillResources};
//! use refmcp_proto::skill::{Digest, Document, SkillEntry};
//!
//! let (uri, text) = ("skill://refunds/SKILL.md", "---\nname: refunds\ndescription: Pays back\n---\nAsk first.\n");
//! let fields = Document::parse(text)?.frontmatter;
//! let size = u64::try_from(text.len())?;
//! let file = SkillResource::new(uri, Digest::of(text.as_bytes()).to_string(), size);
//! let entry = SkillEntry::check(Skill::new(uri, fields, SkillResources::Files(vec![file])))?;
//!
//! let verified = entry.verify(uri, &ResourceContents::text(uri, text))?;
//! assert_eq!(verified.text(), Some(text));
//! assert!(entry.verify(uri, &ResourceContents::text(uri, "something else")).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod approval;
mod digest;
mod document;
mod entry;
mod uri;

pub use approval::Approval;
pub use digest::{Digest, InvalidDigest};
pub use document::{Document, DocumentError};
pub use entry::{SkillEntry, SkillEntryError, VerifiedFile};
pub use uri::{SKILL_FILE, is_prefix, is_skill_name, relative_path, uri_of};

/// Files of a skill.
pub const MAX_FILES: usize = 512;

/// Bytes of all files of a skill together.
pub const MAX_BYTES: u64 = 16 << 20;
