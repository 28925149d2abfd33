//! `.env` files: lines of environment variables.

use refmcp_auth::secret::Secret;

/// Reads lines of the form `NAME=value`. Blank lines, comments and whatever has another form are left out; a word
/// `export` before a name and quotes around a value are not part of them.
pub(super) fn parse(text: &str) -> Vec<(String, Secret)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().filter_map(variable).collect()
}

fn variable(line: &str) -> Option<(String, Secret)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
        return None;
    }
    let value = value.trim();
    let quoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = match (quoted('"'), quoted('\'')) {
        (Some(inside), _) => inside.replace("\\n", "\n").replace("\\\"", "\""),
        (_, Some(inside)) => inside.to_owned(),
        // What follows a space and a hash is a comment.
        _ => value.split(" #").next().unwrap_or_default().trim_end().to_owned(),
    };
    Some((name.to_owned(), Secret::new(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_among_other_things() {
        let text = "\u{feff}# comment\nA=1\n export B = two words # why\n\nC=\"a\\nb # c\"\nD='$x'\nE=\nnonsense\n=x\nF G=1\r\nH=x=y";
        let read: Vec<_> =
            parse(text).into_iter().map(|(name, value)| format!("{name}:{}", value.reveal())).collect();
        assert_eq!(read, ["A:1", "B:two words", "C:a\nb # c", "D:$x", "E:", "H:x=y"]);
    }
}
