//! What a name that is not there may have been meant to be.

use super::text::one_line;

/// So many names are told in one line.
const FEW: usize = 8;

/// How alike two names have to be, of 1, for one to be taken for a slip of the other.
const ALIKE: f64 = 0.6;

/// How alike a word and a command have to be, of 1, for the word to be no name of something else.
const SLIP: f64 = 0.7;

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

/// Whether a word is a slip of this name, and does not just have it in it.
pub(crate) fn is_slip(word: &str, name: &str) -> bool {
    strsim::normalized_damerau_levenshtein(word, name) >= SLIP
}

/// What may have been meant by a name that is none of these, and what there is: all of it where that is little. `there`
/// comes before the names. Nothing where there are none.
pub(crate) fn choices(name: &str, names: &[&str], there: &str) -> Option<String> {
    let all = match names {
        [] => return None,
        few if few.len() <= FEW => few.join(", "),
        many => format!("{} of them", many.len()),
    };
    let said = match nearest(name, names) {
        Some(near) => {
            let (first, rest) = there.split_at(1);
            format!("did you mean {near:?}? {}{rest} {all}", first.to_uppercase())
        }
        None => format!("{there} {all}"),
    };
    Some(one_line(&said).into_owned())
}

/// Names something that the server does not have, and what it has.
pub(crate) fn unknown(what: &str, name: &str, names: &[&str]) -> String {
    let Some(said) = choices(name, names, "it has") else { return format!("the server has no {what}s") };
    let shown =
        if said.starts_with("it has") && names.len() > FEW { ", which `refmcp list` shows" } else { "" };
    format!("the server has no {what} {:?}; {said}{shown}", one_line(name))
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
        assert_eq!(choices("x", &[], "there is"), None);
        assert_eq!(
            choices("smu", &["sum", "b\n"], "there is").unwrap(),
            "did you mean \"sum\"? There is sum, b "
        );
    }

    #[test]
    fn a_name_within_a_word_is_no_slip() {
        assert!(is_slip("hlep", "help") && is_slip("conect", "connect"));
        assert!(!is_slip("read_file", "read") && !is_slip("helper_tool", "help"));
    }
}
