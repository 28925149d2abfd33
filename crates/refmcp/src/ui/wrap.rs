//! Breaking text into lines between words. Words are never broken: names and addresses stay whole.

use super::text::width;

/// The lines of a text, each of no more than so many columns unless a single word is wider.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && width(&line) + 1 + width(word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The columns of the widest word.
pub(crate) fn widest_word(text: &str) -> usize {
    text.split(' ').map(width).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_only() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(
            wrap("see https://example.org/long for more", 10),
            ["see", "https://example.org/long", "for more"]
        );
        assert_eq!(wrap("漢字 漢字", 5), ["漢字", "漢字"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(widest_word("a bcd ef"), 3);
    }
}
