//! Front matter: what is read, and what is said about mistakes.

use super::*;

fn fault(text: &str) -> String {
    FrontMatter::parse(text, 2).unwrap_err().to_string()
}

#[test]
fn everything_is_read_as_it_was_written() {
    let text = "# notes\ntitle: \"T: t\"\ndescription: |\n  One\n  two\narguments:\n- name: version\n  title: Version\n  \
                description: Which\n  required: true\n- name: tone\n  default: 1.0\n  values: [1.0, '2', yes]\n- {name: who, \
                required: false, description: ~}\n- name: last\n";
    let read = FrontMatter::parse(text, 2).unwrap();
    assert_eq!(read.title.as_deref(), Some("T: t"));
    assert_eq!(read.description.as_deref(), Some("One\ntwo\n"));
    let [version, tone, who, last] = read.arguments.as_slice() else { panic!("{read:?}") };
    assert_eq!((version.name.as_str(), version.required, version.line), ("version", true, 8));
    assert_eq!((version.title.as_deref(), version.description.as_deref()), (Some("Version"), Some("Which")));
    assert_eq!((tone.required, tone.default.as_deref()), (false, Some("1.0")));
    assert_eq!(tone.values, ["1.0", "2", "yes"]);
    assert_eq!((who.required, who.description.as_deref()), (false, None));
    assert!(last.required, "an argument without a default must be given");
    for nothing in ["", "\n\n", "# only a remark\n", "~"] {
        assert_eq!(FrontMatter::parse(nothing, 2).unwrap(), FrontMatter::default(), "{nothing:?}");
    }
}

#[test]
fn faults_name_the_line_and_what_to_do() {
    for (text, line, word) in [
        ("title: T\nauthor: A\n", 3, "the keys are title, description and arguments"),
        ("title: T: t\n", 2, "quotes"),
        ("title: 'T\n", 2, "not valid YAML"),
        ("title: T\ntitle: U\n", 3, "twice"),
        ("title: [a]\n", 2, "takes text"),
        ("- title\n", 2, "expected `title: …`"),
        ("just words\n", 2, "expected `title: …`"),
        ("argument version: The version\n", 2, "`- name: version`"),
        ("optional tone: The tone\n", 2, "`- name: tone`"),
        ("name: other\n", 2, "rename the file"),
        ("messages:\n- role: user\n", 2, "{{role \"assistant\"}}"),
        ("arguments:\n  version: x\n", 3, "`arguments` is a list"),
        ("arguments:\n- version\n", 3, "expected `- name: NAME`"),
        ("arguments:\n- title: x\n", 3, "no name"),
        ("arguments:\n- name: a b\n", 3, "no name of an argument"),
        ("arguments:\n- name: a\n- name: a\n", 4, "twice"),
        ("arguments:\n- name: a\n  kind: x\n", 4, "name, title, description, required, default and values"),
        ("arguments:\n- name: a\n  required: yes\n", 4, "write true or false"),
        ("arguments:\n- name: a\n  required: true\n  default: x\n", 3, "remove one"),
        ("arguments:\n- name: a\n  values: x\n", 4, "`values` is a list"),
        ("title: &a T\n", 2, "anchors"),
        ("title: *a\n", 2, ""),
        ("title: !!str T\n", 2, "tags"),
        ("arguments: [[[[[[[[[[[]]]]]]]]]]]\n", 2, "too deeply"),
        ("? [a]\n: b\n", 2, "a key is a word"),
        ("title: T\n...\ntitle: U\n", 4, "..."),
    ] {
        let error = fault(text);
        assert!(error.starts_with(&format!("line {line}: ")) && error.contains(word), "{text:?}: {error}");
    }
}

#[test]
fn sizes_are_bounded() {
    assert!(fault(&format!("title: {}", "x".repeat(MAX_BYTES))).contains("64 KiB"));
    let many: String = (0..=MAX_ARGUMENTS).map(|number| format!("- name: a{number}\n")).collect();
    assert!(fault(&format!("arguments:\n{many}")).contains("more than 100"));
    // Nested as deeply as the size allows, it must neither take long nor use up the stack.
    let deep = MAX_BYTES / 2 - 10;
    for open in ["[", "{a: ", "- ", "? "] {
        FrontMatter::parse(&open.repeat(deep / open.len()), 2).unwrap_err();
    }
}
