//! A script for a shell, such as the word after `sh -c`, cut into words without taking anything away from it.

/// A piece of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// What separates words.
    Separator(&'a str),
    /// A word with its quotes.
    Word(&'a str),
}

/// Cuts a script into its pieces; put together again they are the script.
pub(super) fn pieces(script: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = script;
    while !rest.is_empty() {
        let between = rest.find(|c| !is_between(c)).unwrap_or(rest.len());
        let (separator, behind) = rest.split_at_checked(between).unwrap_or((rest, ""));
        if !separator.is_empty() {
            pieces.push(Piece::Separator(separator));
        }
        let (word, behind) = behind.split_at_checked(word_length(behind)).unwrap_or((behind, ""));
        if !word.is_empty() {
            pieces.push(Piece::Word(word));
        }
        rest = behind;
    }
    pieces
}

fn is_between(c: char) -> bool {
    c.is_whitespace() || ";|&()<>".contains(c)
}

/// How long the word is that a script begins with. A quote that is not closed goes on to the end.
fn word_length(script: &str) -> usize {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in script.char_indices() {
        match quote {
            _ if escaped => escaped = false,
            Some('\'') | None if c == '\'' => quote = if quote.is_none() { Some(c) } else { None },
            Some('"') | None if c == '"' => quote = if quote.is_none() { Some(c) } else { None },
            Some('"') | None if c == '\\' => escaped = true,
            None if is_between(c) => return at,
            _ => {}
        }
    }
    script.len()
}

/// What is in the quotes of a word that is quoted as a whole, and its quote.
pub(super) fn unquoted(word: &str) -> Option<(char, &str)> {
    let quote = word.chars().next().filter(|c| "'\"".contains(*c))?;
    let inner = word.strip_prefix(quote)?;
    // One that is not closed is quoted to the end.
    let inner = inner.strip_suffix(quote).unwrap_or(inner);
    (!inner.contains(quote)).then_some((quote, inner))
}
