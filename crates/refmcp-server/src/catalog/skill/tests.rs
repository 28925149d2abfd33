//! Tests of skills as values.

use refmcp_proto::skill::SkillEntry;

use super::*;

fn text(name: &str) -> String {
    format!("---\nname: {name}\ndescription: What {name} is for\n---\nBody\n")
}

fn fault(skill: Skill) -> String {
    skill.compile().unwrap_err().to_string()
}

#[test]
fn entries_are_those_that_clients_accept() {
    let skill = Skill::new(text("outer"))
        .under("acme")
        .file("parts/inner/SKILL.md", MARKDOWN, text("inner"))
        .file("parts/inner/a b.md", MARKDOWN, "x")
        .untyped_file("data", vec![0xFF]);
    let compiled = skill.compile().unwrap();
    let uris: Vec<&str> = compiled.entries.iter().map(|entry| entry.uri.as_str()).collect();
    assert_eq!(uris, ["skill://acme/outer/SKILL.md", "skill://acme/outer/parts/inner/SKILL.md"]);
    let files =
        compiled.entries.iter().map(|entry| SkillEntry::check(entry.clone()).unwrap().files().count());
    assert_eq!(files.collect::<Vec<_>>(), [4, 2]);
    let children = |uri: &str| -> Vec<(String, Option<String>)> {
        let children = compiled.directory(uri).unwrap().iter();
        children.map(|child| (child.name.clone(), child.mime_type.clone())).collect()
    };
    let directory = || Some(DIRECTORY_TYPE.to_owned());
    let markdown = || Some(MARKDOWN.to_owned());
    assert_eq!(
        children("skill://acme/outer"),
        [("parts".into(), directory()), ("outer".into(), markdown()), ("data".into(), None)]
    );
    assert_eq!(children("skill://acme/outer/parts"), [("inner".into(), directory())]);
    assert_eq!(
        children("skill://acme/outer/parts/inner"),
        [("inner".into(), markdown()), ("a b.md".into(), markdown())]
    );
    for other in
        ["skill://acme", "skill://acme/outer/", "skill://acme/outer/SKILL.md", "skill://acme/outer/x"]
    {
        assert_eq!(compiled.directory(other), None, "{other}");
    }
}

#[test]
fn generated_files_make_a_skill_dynamic() {
    let skill = Skill::new(text("a"))
        .generated("now.txt", |_| async { Ok(ResourceContents::text("skill://a/now.txt", "now")) })
        .file("b/SKILL.md", MARKDOWN, text("b"));
    let compiled = skill.compile().unwrap();
    assert_eq!(compiled.entries[0].resources, SkillResources::Dynamic);
    assert!(matches!(&compiled.entries[1].resources, SkillResources::Files(files) if files.len() == 1));
}

#[test]
fn mistakes_are_said() {
    let skill = || Skill::new(text("a"));
    for (skill, expected) in [
        (Skill::new("# a"), "no front matter"),
        (Skill::new(vec![0xFF]), "not UTF-8"),
        (Skill::new(text("A")), "is none of a skill"),
        (skill().under("/x"), "cannot be put under"),
        (skill().under("a b"), "cannot be put under"),
        (skill().file("../x", MARKDOWN, ""), "is no path"),
        (skill().file("/x", MARKDOWN, ""), "is no path"),
        (skill().file("x//y", MARKDOWN, ""), "is no path"),
        (skill().file("SKILL.md", MARKDOWN, text("a")), "twice"),
        (skill().file("x", MARKDOWN, "").file("x/y", MARKDOWN, ""), "a file and a directory"),
        (skill().file("b/SKILL.md", MARKDOWN, text("c")), "has to be called c"),
        (skill().file("b/SKILL.md", MARKDOWN, "b"), "no front matter"),
        (skill().untyped_file("x", vec![0; 16 << 20]), "16 MiB"),
        ((0..512).fold(skill(), |skill, n| skill.untyped_file(n.to_string(), "")), "512 files"),
    ] {
        let error = fault(skill);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn skills_come_change_and_go_with_their_files() {
    let mut catalog = crate::Catalog::default();
    let skill = |files: &[(&str, &str)]| {
        let skill = Skill::new(text("a"));
        files.iter().fold(skill, |skill, (path, bytes)| skill.file(*path, MARKDOWN, (*bytes).to_owned()))
    };
    let changes = |catalog: &mut crate::Catalog| catalog.take_changes().len();
    let added = catalog.add_skill(skill(&[("x", "1"), ("b/SKILL.md", &text("b"))])).unwrap();
    assert_eq!((added.len(), changes(&mut catalog)), (3, 1));
    assert_eq!(catalog.skills().collect::<Vec<_>>(), ["skill://a/SKILL.md", "skill://a/b/SKILL.md"]);
    let same = catalog.add_skill(skill(&[("x", "1"), ("b/SKILL.md", &text("b"))])).unwrap();
    assert_eq!((same.len(), changes(&mut catalog)), (0, 0));
    let changed = catalog.add_skill(skill(&[("x", "2"), ("y", "1")])).unwrap();
    assert_eq!(changed, ["skill://a/b/SKILL.md", "skill://a/x", "skill://a/y"]);
    assert_eq!((changes(&mut catalog), catalog.skills().count()), (1, 1));
    assert!(!catalog.has_resource("skill://a/b/SKILL.md") && catalog.has_resource("skill://a/y"));

    let inside = Skill::new(text("c")).under("a");
    assert!(catalog.add_skill(inside).unwrap_err().to_string().contains("lies in the other"));
    let read = |_| async { Ok(ResourceContents::text("skill://z/SKILL.md", "")) };
    catalog.add_resource(Resource::new("skill://z/SKILL.md", "z", read));
    assert!(catalog.add_skill(Skill::new(text("z"))).unwrap_err().to_string().contains("another resource"));
    changes(&mut catalog);

    assert_eq!(catalog.remove_skill("skill://a/SKILL.md").len(), 3);
    assert!(catalog.remove_skill("skill://a/SKILL.md").is_empty());
    assert_eq!((changes(&mut catalog), catalog.skills().count(), catalog.len()), (1, 0, 1));
}
