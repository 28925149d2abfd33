//! Prompt files as a whole.

use super::*;

fn names(template: &Template) -> Vec<(&str, bool)> {
    let arguments = template.front_matter.arguments.iter();
    arguments.map(|argument| (argument.name.as_str(), argument.required)).collect()
}

#[test]
fn a_file_is_read() {
    let file =
        "---\ntitle: T\narguments:\n- name: b\n  default: bee\n- name: c\n---\n\nA {{ a }} and {{b}}{{a}}.\n";
    let template = Template::parse(file).unwrap();
    assert_eq!(names(&template), [("b", false), ("c", true), ("a", true)]);
    assert_eq!(template.unused(), [("c", 6)]);
    assert_eq!(template, Template::parse(&file.replace('\n', "\r\n")).unwrap());
    assert_eq!(template, Template::parse(&format!("\u{feff}{}", file.replace("---\n", "---  \n"))).unwrap());
}

#[test]
fn front_matter_is_optional() {
    for file in ["just {{text}}", "---\n---\njust {{text}}", "---\n# nothing\n---\njust {{text}}\n"] {
        let template = Template::parse(file).unwrap();
        assert_eq!(
            (template.front_matter.title.as_deref(), names(&template)),
            (None, vec![("text", true)]),
            "{file:?}"
        );
    }
}

#[test]
fn faults_name_the_line_of_the_file() {
    let many: String = (0..=MAX_ARGUMENTS).map(|number| format!("{{{{a{number}}}}}")).collect();
    for (file, said) in [
        ("---\ntitle: T\ntext", "line 1: the front matter has no end"),
        ("---\n\ntitle: T\nauthor: A\n---\ntext", "line 4: the key `author` is unknown"),
        ("---\ntitle: T\n---\n", "line 4: there is no text"),
        ("---\ntitle: T\n---\n\nHello {{name", "line 5: {{ has no }}"),
        ("Hello\n{{name", "line 2: {{ has no }}"),
        ("", "line 1: there is no text"),
        (&format!("---\n---\n\n{many}"), "line 4: there are more than 100 arguments"),
    ] {
        let error = Template::parse(file).unwrap_err().to_string();
        assert!(error.starts_with(said), "{file:?}: {error}");
    }
}

/// Files are damaged at random, always in the same way: each is read or refused, and none is a panic.
#[test]
fn no_file_is_a_panic() {
    let file = "---\ntitle: \"T: t\"\ndescription: >-\n  two\n  lines\narguments:\n- name: a\n  default: 'x'\n  values: [b, {c: d}]\n\
                - {name: e, required: false}\n---\nA {{ a }} \\{{ {{role \"assistant\"}}\n\u{e4} {{e}}\n";
    let parts = [
        "---\n", ": ", "- ", "[", "]", "{", "}", "&a ", "*a", "!!t ", "\"", "'", "|\n", ">\n", "#", "%", "@",
        "\t", "\n", "? ", "...", "{{", "}}", "\\", "role", "\u{feff}", "\u{85}", "\u{2028}", "\0", ",", "<<",
        "~", "\\x", "\r",
    ];
    let mut seed = 7_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let (mut read, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut damaged: Vec<char> = file.chars().collect();
        for _ in 0..=next(6) {
            let at = next(damaged.len());
            match next(3) {
                0 => drop(damaged.drain(at..(at + 1 + next(8)).min(damaged.len()))),
                1 => drop(damaged.splice(at..at, parts[next(parts.len())].chars())),
                _ => drop(damaged.splice(at..=at, parts[next(parts.len())].chars())),
            }
            if damaged.is_empty() {
                damaged.push('x');
            }
        }
        match Template::parse(&damaged.iter().collect::<String>()) {
            Ok(template) => {
                drop(template.prompt("x"));
                read += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read > 100 && refused > 100, "{read} {refused}");
}
