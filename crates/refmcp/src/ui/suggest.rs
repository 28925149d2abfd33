//! What a name that is not there may have been meant to be.

use super::text::one_line;

/// So many names are told in one line.
const FEW: usize = 8;

/// How alike two names have to be, of 1, for one to be taken for a slip of the other.
const ALIKE: f64 = 0.6;

/// The name that may have been meant; nothing where none is anywhere near.
pub(crate) fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let likeness = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let alike = strsim::normalized_damerau_levenshtein(&candidate, &wanted);
        let part = |whole: &str, part: &str| part.chars().count() >= 3 && whole.contains(part);
        if part(&candidate, &wanted) || part(&wanted, &candidate) { alike.max(ALIKE) } else { alike }
    };
    let scored = names.iter().map(|candidate| (likeness(candidate), *candidate));
    let near = scored.filter(|(likeness, _)| *likeness >= ALIKE);
    near.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, candidate)| candidate)
}

/// Names something that the server does not have, and what it has: all of it where that is little.
pub(crate) fn unknown(what: &str, name: &str, names: &[&str]) -> String {
    let said = match (names, nearest(name, names)) {
        ([], _) => return format!("the server has no {what}s"),
        (few, Some(nearest)) if few.len() <= FEW => {
            format!("did you mean {nearest:?}? It has {}", few.join(", "))
        }
        (few, None) if few.len() <= FEW => format!("it has {}", few.join(", ")),
        (many, Some(nearest)) => format!("did you mean {nearest:?}? It has {} of them", many.len()),
        (many, None) => format!("it has {} of them, which `refmcp list` shows", many.len()),
    };
    one_line(&format!("the server has no {what} {name:?}; {said}")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_proposed() {
        let names = ["echo", "sum", "long_task", "ask_user", "big_result", "a", "b", "c", "d"];
        for (name, expected) in [
            ("ecco", Some("echo")),
            ("ECHO", Some("echo")),
            ("longtask", Some("long_task")),
            ("task", Some("long_task")),
            ("smu", Some("sum")),
            ("frobnicate", None),
            ("weather", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, &names), expected, "{name}");
        }
    }

    #[test]
    fn few_names_are_all_told() {
        assert_eq!(unknown("tool", "x", &[]), "the server has no tools");
        assert_eq!(unknown("tool", "x", &["a", "b"]), "the server has no tool \"x\"; it has a, b");
        let near = "the server has no tool \"smu\"; did you mean \"sum\"? It has sum, b";
        assert_eq!(unknown("tool", "smu", &["sum", "b"]), near);
        let many = ["echo", "b", "c", "d", "e", "f", "g", "h", "i"];
        assert!(unknown("tool", "ecco", &many).ends_with("did you mean \"echo\"? It has 9 of them"));
        let absurd = unknown("tool", "frobnicate", &many);
        assert!(absurd.ends_with("it has 9 of them, which `refmcp list` shows"), "{absurd}");
    }
}
