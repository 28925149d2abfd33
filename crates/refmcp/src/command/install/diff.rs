//! What changes in a text, as a unified diff. An edit is in one place, so there is one hunk: what is between the lines
//! that both texts begin with and those that both end with.

use std::fmt::Write;

use crate::ui::style::Paint;
use crate::ui::text::one_line;

/// Lines that are shown around a change.
const CONTEXT: usize = 3;

/// The change of a file from one content to another; `None` where there is no file. A content is shown as `shown` gives it,
/// with as many lines: a change of what is not shown is a change too.
pub(super) fn unified(
    file: &str,
    before: Option<&str>,
    after: Option<&str>,
    shown: fn(&str) -> String,
    paint: Paint,
) -> String {
    let [old_shown, new_shown] = [before, after].map(|content| content.map(shown));
    let (old, new) = (lines(before), lines(after));
    let (old_lines, new_lines) = (lines(old_shown.as_deref()), lines(new_shown.as_deref()));
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count().min(most);
    let (from, until) = (head.saturating_sub(CONTEXT), CONTEXT.min(tail));
    let name = |content: Option<&str>| content.map_or("/dev/null".into(), |_| one_line(file));
    let mut shown = String::new();
    let place = |first: usize, total: usize| {
        let count = total - tail + until - first;
        format!("{},{count}", if count == 0 { first } else { first + 1 })
    };
    let title = format!("--- {}\n+++ {}", name(before), name(after));
    // Writing to a text does not fail.
    let _ = writeln!(shown, "{}", paint.strong(&title));
    let _ = writeln!(
        shown,
        "{}",
        paint.value(&format!("@@ -{} +{} @@", place(from, old.len()), place(from, new.len())))
    );
    let mut show = |sign: char, line: &str, style: &dyn Fn(&str) -> String| {
        let (text, end) =
            line.strip_suffix('\n').map_or((line, "\n\\ No newline at end of file"), |text| (text, ""));
        let text = text.strip_suffix('\r').unwrap_or(text);
        let _ = writeln!(shown, "{}{end}", style(&format!("{sign}{}", shown_line(text))));
    };
    for line in old_lines.get(from..head).unwrap_or_default() {
        show(' ', line, &str::to_owned);
    }
    for line in old_lines.get(head..old.len() - tail).unwrap_or_default() {
        show('-', line, &|text| paint.wrong(text));
    }
    for line in new_lines.get(head..new.len() - tail).unwrap_or_default() {
        show('+', line, &|text| paint.added(text));
    }
    for line in new_lines.get(new.len() - tail..new.len() - tail + until).unwrap_or_default() {
        show(' ', line, &str::to_owned);
    }
    shown
}

/// A line with its tabs, and without anything that steers a terminal.
fn shown_line(line: &str) -> String {
    line.split('\t').map(one_line).collect::<Vec<_>>().join("\t")
}

fn lines(text: Option<&str>) -> Vec<&str> {
    text.unwrap_or_default().split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: Option<&str>, after: Option<&str>) -> String {
        unified("f", before, after, str::to_owned, Paint::PLAIN)
    }

    #[test]
    fn the_lines_around_a_change_are_shown() {
        let shown = diff(Some("1\n2\n3\n4\n5\n6\n7\n8\n"), Some("1\n2\n3\n4\nx\n\ty\n6\n7\n8\n"));
        assert_eq!(shown, "--- f\n+++ f\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+x\n+\ty\n 6\n 7\n 8\n");
    }

    #[test]
    fn a_change_that_is_not_shown_is_seen() {
        let shown = |text: &str| text.replace(['x', 'y'], "*");
        let diff = unified("f", Some("a\nx\n"), Some("a\ny\n"), shown, Paint::PLAIN);
        assert_eq!(diff, "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-*\n+*\n");
    }

    #[test]
    fn files_come_and_go() {
        assert_eq!(diff(None, Some("a\nb\n")), "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(diff(Some("a\n"), None), "--- f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n");
    }

    #[test]
    fn repeated_lines_and_ends_without_a_line_break_are_right() {
        assert_eq!(diff(Some("a\na\n"), Some("a\na\na\n")), "--- f\n+++ f\n@@ -1,2 +1,3 @@\n a\n a\n+a\n");
        let shown = diff(Some("{}"), Some("{\n}"));
        let end = "\\ No newline at end of file\n";
        assert_eq!(shown, format!("--- f\n+++ f\n@@ -1,1 +1,2 @@\n-{{}}\n{end}+{{\n+}}\n{end}"));
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let shown = diff(None, Some("a\x1b[2J\r\n"));
        assert!(shown.ends_with("+a␛[2J\n"), "{shown:?}");
    }
}
