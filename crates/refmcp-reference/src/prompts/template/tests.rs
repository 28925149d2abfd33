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
    let many: String = (0..=MOST_ARGUMENTS).map(|number| format!("{{{{a{number}}}}}")).collect();
    for (file, said) in [
        ("---\ntitle: T\ntext", "line 1: the front matter has no end"),
        ("---\n\ntitle: T\nauthor: A\n---\ntext", "line 4: the key `author` is unknown"),
        ("---\ntitle: T\n---\n", "line 4: there is no text"),
        ("---\ntitle: T\n---\n\nHello {{name", "line 5: {{ has no }}"),
        ("Hello\n{{name", "line 2: {{ has no }}"),
        ("", "line 1: there is no text"),
        (&format!("---\n---\n\n{many}"), "line 4: there are more than 100 arguments"),
    ] {
        let fault = Template::parse(file).unwrap_err().to_string();
        assert!(fault.starts_with(said), "{file:?}: {fault}");
    }
}
