//! Tests of entries and of verification.

use serde_json::json;

use super::*;
use crate::model::SkillResource;
use crate::skill::Approval;

const URI: &str = "skill://acme/refunds/SKILL.md";
const FORM: &str = "skill://acme/refunds/forms/a%20b.md";
const TEXT: &str = "---\nname: refunds\ndescription: Pays back\nmetadata: {version: 1.0}\n---\nAsk first.\n";

fn file(uri: &str, bytes: &[u8]) -> SkillResource {
    SkillResource::new(uri, Digest::of(bytes).to_string(), bytes.len() as u64)
}

fn fields() -> JsonObject {
    json!({ "name": "refunds", "description": "Pays back", "metadata": { "version": 1 } })
        .as_object()
        .cloned()
        .unwrap()
}

fn skill() -> Skill {
    let files = vec![file(URI, TEXT.as_bytes()), file(FORM, b"\xff\0")];
    Skill::new(URI, fields(), SkillResources::Files(files))
}

fn entry() -> SkillEntry {
    SkillEntry::check(skill()).unwrap()
}

#[test]
fn what_fits_is_verified() {
    let entry = entry();
    assert_eq!(
        (entry.name(), entry.description(), entry.root()),
        ("refunds", "Pays back", "skill://acme/refunds")
    );
    assert_eq!(entry.size(), TEXT.len() as u64 + 2);
    let verified = entry.verify(URI, &ResourceContents::text(URI, TEXT)).unwrap();
    assert_eq!((verified.path(), verified.text(), verified.has_digest()), ("SKILL.md", Some(TEXT), true));
    let verified = entry.verify(FORM, &ResourceContents::blob(FORM, "/wA=")).unwrap();
    assert_eq!((verified.path(), verified.bytes(), verified.text()), ("forms/a b.md", &b"\xff\0"[..], None));
    assert_eq!(entry.file_uri("forms/a b.md").unwrap(), FORM);
    assert_eq!(entry.file_uri("../x").unwrap_err().kind(), "unlisted");
}

#[test]
fn each_mismatch_is_told_apart() {
    let entry = entry();
    let same_size = TEXT.replace("first", "later");
    let other = "skill://acme/refunds/other.md";
    for (uri, contents, kind) in [
        (URI, ResourceContents::text(URI, "short"), "size"),
        (URI, ResourceContents::text(URI, same_size), "digest"),
        (URI, ResourceContents::text(FORM, TEXT), "unreadable"),
        (FORM, ResourceContents::blob(FORM, "%"), "unreadable"),
        (other, ResourceContents::text(other, TEXT), "unlisted"),
    ] {
        assert_eq!(entry.verify(uri, &contents).unwrap_err().kind(), kind);
    }
}

#[test]
fn front_matter_is_compared_field_by_field_even_where_the_digest_fits() {
    let altered = |change: fn(&mut JsonObject)| {
        let mut skill = skill();
        change(&mut skill.frontmatter);
        SkillEntry::check(skill).unwrap().verify(URI, &ResourceContents::text(URI, TEXT))
    };
    assert!(altered(|_| {}).is_ok());
    type Change = fn(&mut JsonObject);
    let changes: [(Change, &str); 4] = [
        (|fields| drop(fields.insert("description".into(), "Harmless".into())), "description"),
        (|fields| drop(fields.insert("license".into(), "MIT".into())), "license"),
        (|fields| drop(fields.remove("metadata")), "metadata"),
        (|fields| drop(fields.insert("metadata".into(), json!({ "version": "1" }))), "metadata"),
    ];
    for (change, field) in changes {
        let fault = altered(change).unwrap_err();
        assert_eq!(fault.kind(), "frontmatter");
        assert!(fault.to_string().contains(field), "{fault}");
    }
}

#[test]
fn dynamic_skills_have_their_front_matter_verified() {
    let entry = SkillEntry::check(Skill::new(URI, fields(), SkillResources::Dynamic)).unwrap();
    let verified = entry.verify(URI, &ResourceContents::text(URI, TEXT.replace("first", "later"))).unwrap();
    assert!(!verified.has_digest() && entry.is_dynamic());
    let other = ResourceContents::text(URI, TEXT.replace("Pays", "Plays"));
    assert_eq!(entry.verify(URI, &other).unwrap_err().kind(), "frontmatter");
    let outside = "skill://acme/refunds/../x";
    assert_eq!(entry.verify(outside, &ResourceContents::text(outside, "")).unwrap_err().kind(), "unlisted");
    assert_eq!(Approval::of(&entry), None);
}

#[test]
fn entries_that_contradict_themselves_are_refused() {
    let with = |change: &dyn Fn(&mut Skill)| {
        let mut skill = skill();
        change(&mut skill);
        SkillEntry::check(skill).map(drop).map_err(|fault| fault.kind())
    };
    let files = |files: Vec<SkillResource>| {
        with(&move |skill| skill.resources = SkillResources::Files(files.clone()))
    };
    assert_eq!(with(&|_| {}), Ok(()));
    assert_eq!(with(&|skill| skill.uri = "skill://acme/refunds".into()), Err("entry"));
    assert_eq!(with(&|skill| skill.uri = "skill://acme/other/SKILL.md".into()), Err("entry"));
    assert_eq!(with(&|skill| skill.uri = "SKILL.md".into()), Err("entry"));
    assert_eq!(with(&|skill| drop(skill.frontmatter.remove("description"))), Err("entry"));
    let own = || file(URI, b"x");
    assert_eq!(files(vec![]), Err("entry"));
    assert_eq!(files(vec![own(), own()]), Err("entry"));
    assert_eq!(files(vec![own(), file("skill://acme/refunds/../x", b"")]), Err("entry"));
    assert_eq!(files(vec![own(), file("skill://acme/refunds/%53KILL.md", b"")]), Err("entry"));
    assert_eq!(
        files(vec![own(), SkillResource::new("skill://acme/refunds/a", "md5:0", 1_u64)]),
        Err("entry")
    );
    let digest = Digest::of(b"").to_string();
    let large = SkillResource::new("skill://acme/refunds/a", digest, MAX_BYTES);
    assert_eq!(files(vec![own(), large]), Err("too_large"));
    let many = (0..512).map(|number| file(&format!("skill://acme/refunds/{number}"), b""));
    assert_eq!(files(many.chain([own()]).collect()), Err("too_large"));
}

#[test]
fn a_changed_file_revokes_what_was_approved() {
    let mut changed = skill();
    if let SkillResources::Files(files) = &mut changed.resources {
        files[1].digest = Digest::of(b"other").to_string();
    }
    let approval = Approval::of(&entry()).unwrap();
    assert!(approval.covers(&entry()) && approval.uri() == URI);
    assert!(!approval.covers(&SkillEntry::check(changed).unwrap()));
    let written = serde_json::to_string(&approval).unwrap();
    assert_eq!(serde_json::from_str::<Approval>(&written).unwrap(), approval);
}
