//! Skills: any text is a `SKILL.md` or a fault, any JSON an entry or a fault, and nothing is verified whose bytes are not those
//! of the entry.

use refmcp_proto::model::{ResourceBody, ResourceContents, Skill};
use refmcp_proto::skill::{Digest, Document, MAX_BYTES, MAX_FILES, SkillEntry, is_skill_name};

/// The bytes are a document, and an entry with that document as the content of each file.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(document) = Document::parse(&text) {
        assert!(is_skill_name(document.name()), "{:?}", document.name());
        assert!(!document.description().is_empty());
    }
    // An entry on the first line, a file behind it.
    let (entry, file) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(skill) = serde_json::from_str::<Skill>(entry) else { return };
    let Ok(entry) = SkillEntry::check(skill) else { return };
    assert!(is_skill_name(entry.name()));
    assert!(entry.files().count() <= MAX_FILES && entry.size() <= MAX_BYTES);
    for (uri, path, digest) in entry.files() {
        let is_inside = path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\\'));
        assert!(is_inside, "{path:?}");
        assert_eq!(entry.file_uri(path).as_deref(), Ok(uri));
        let contents = ResourceContents::new(uri, ResourceBody::Text(file.to_owned()));
        if let Ok(verified) = entry.verify(uri, &contents) {
            assert_eq!((verified.bytes(), Digest::of(verified.bytes())), (file.as_bytes(), digest));
        }
    }
}
