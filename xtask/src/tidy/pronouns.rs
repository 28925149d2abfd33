//! Indefinite pronouns: a sentence or a name that uses one hides which client, server or user it is about.

use super::Violation;
use super::source::Source;

/// In pieces, so that this file does not use them either.
const PRONOUNS: [&str; 4] =
    [concat!("who", "ever"), concat!("no", "body"), concat!("some", "body"), concat!("any", "body")];

/// Looks at Rust sources, with their names and messages, and at Markdown.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    if !source.is_rust() && !source.path.ends_with(".md") {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for line in &source.lines {
        let text = line.text.to_lowercase();
        for pronoun in PRONOUNS.into_iter().filter(|pronoun| text.contains(pronoun)) {
            let what = format!("`{pronoun}`: name the client, server or user that is meant");
            violations.push(Violation::new(&source.path, line.number, what));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_and_names_are_looked_at() {
        for pronoun in PRONOUNS {
            let capital = pronoun.to_uppercase();
            for text in
                [format!("// for {pronoun}."), format!("{capital} waits"), format!("fn {pronoun}_asks()")]
            {
                assert_eq!(check(&Source::new("src/a.rs", &text)).len(), 1, "{text}");
                assert_eq!(check(&Source::new("docs/a.md", &text)).len(), 1, "{text}");
                assert_eq!(check(&Source::new("a.json", &text)), [], "{text}");
            }
        }
    }

    #[test]
    fn words_with_a_body_of_their_own_are_fine() {
        assert_eq!(check(&Source::new("src/a.rs", "everybody reads the body; no Body, whatever")), []);
    }
}
