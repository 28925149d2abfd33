//! How messages differ, line by line.

use serde_json::Value;

/// The messages that were expected and those that came, as one text: `-` was expected, `+` came.
pub(super) fn of_messages(expected: &[Value], came: &[Value]) -> String {
    let (left, right) = (lines(expected), lines(came));
    let mut text = String::new();
    for (mark, line) in of_lines(&left, &right) {
        text.push_str(&format!("  {mark} {line}\n"));
    }
    text
}

fn lines(messages: &[Value]) -> Vec<String> {
    if messages.is_empty() {
        return vec!["nothing".to_owned()];
    }
    let pretty = messages.iter().map(|message| serde_json::to_string_pretty(message).unwrap_or_default());
    pretty.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// The shortest way from one list of lines to the other.
fn of_lines<'a>(left: &'a [String], right: &'a [String]) -> Vec<(char, &'a str)> {
    // common[i][j]: how many lines left[i..] and right[j..] have in common, in order.
    let mut common = vec![vec![0_usize; right.len() + 1]; left.len() + 1];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            common[i][j] = if left[i] == right[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut steps) = (0, 0, Vec::new());
    while i < left.len() || j < right.len() {
        if i < left.len() && j < right.len() && left[i] == right[j] {
            steps.push((' ', left[i].as_str()));
            (i, j) = (i + 1, j + 1);
        } else if j == right.len() || (i < left.len() && common[i + 1][j] >= common[i][j + 1]) {
            steps.push(('-', left[i].as_str()));
            i += 1;
        } else {
            steps.push(('+', right[j].as_str()));
            j += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_marked() {
        let text = of_messages(&[json!({"a": 1, "b": 2})], &[json!({"a": 1, "b": 3})]);
        assert_eq!(text, "    {\n      \"a\": 1,\n  -   \"b\": 2\n  +   \"b\": 3\n    }\n");
        assert_eq!(of_messages(&[], &[json!(1)]), "  - nothing\n  + 1\n");
    }
}
