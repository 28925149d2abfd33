//! Comparisons for people.

use std::fmt::Write as _;

use serde_json::Value;

use super::{ChangeKind, Comparison, Difference, DifferenceKind};
use crate::report::Tone;
use crate::visible::{escaped_json, one_line};

/// Changes of a message that are shown, and the characters of a value or a name.
const MAX_SHOWN: usize = 20;
const MAX_VALUE: usize = 120;

/// A comparison as text. The names are those of the recordings; `paint` colours.
pub fn comparison_text(
    comparison: &Comparison,
    before: &str,
    after: &str,
    paint: impl Fn(Tone, &str) -> String,
) -> String {
    let mut text = String::new();
    for difference in &comparison.differences {
        text += &difference_text(difference, &paint);
    }
    let differ = comparison.differences.len();
    let count = |kind| comparison.differences.iter().filter(|it| it.kind == kind).count();
    let (changed, missing, added) =
        (count(DifferenceKind::Changed), count(DifferenceKind::Missing), count(DifferenceKind::Added));
    let of = |count: usize| if count == 1 { "1 message".to_owned() } else { format!("{count} messages") };
    let same = match comparison.same {
        1 => "1 request is the same".to_owned(),
        same => format!("{same} requests are the same"),
    };
    let conclusion = match differ {
        0 => paint(Tone::Good, &format!("No difference: {same}.")),
        _ => paint(
            Tone::Wrong,
            &format!("{} {changed} changed, {missing} missing, {added} added; {same}.", differing(differ)),
        ),
    };
    let names = [(before, comparison.before), (after, comparison.after)];
    let names = names.map(|(name, count)| format!("{}: {}", one_line(name), of(count))).join("; ");
    // Writing to a string does not fail.
    let _ = writeln!(text, "{}\n{conclusion}", paint(Tone::Faint, &names));
    text
}

fn differing(count: usize) -> String {
    if count == 1 { "1 message differs:".to_owned() } else { format!("{count} messages differ:") }
}

fn difference_text(difference: &Difference, paint: impl Fn(Tone, &str) -> String) -> String {
    let (what, tone) = match difference.kind {
        DifferenceKind::Added => ("added", Tone::Careful),
        DifferenceKind::Missing => ("missing", Tone::Wrong),
        DifferenceKind::Changed => ("changed", Tone::Careful),
    };
    let subject = match &difference.request {
        Some(request) if *request != difference.message => format!("{request}: {}", difference.message),
        _ => difference.message.clone(),
    };
    let lines = match (difference.line_before, difference.line_after) {
        (Some(before), Some(after)) => format!("lines {before} and {after}"),
        (Some(before), None) => format!("line {before} of the first"),
        (None, Some(after)) => format!("line {after} of the second"),
        (None, None) => String::new(),
    };
    let head = format!("{} from the {}", paint(tone, what), difference.from);
    let mut text = format!(
        "{} {head}, {}\n",
        paint(Tone::Strong, &one_line(&shortened(&subject))),
        paint(Tone::Faint, &lines)
    );
    for change in difference.changes.iter().take(MAX_SHOWN) {
        let pointer = if change.pointer.is_empty() { "the message" } else { &change.pointer };
        let pointer = shortened(pointer);
        let pointer = one_line(&pointer);
        let (before, after) = (value(change.before.as_ref()), value(change.after.as_ref()));
        let line = match change.kind {
            ChangeKind::Added => format!("  + {pointer}: {after}\n"),
            ChangeKind::Missing => format!("  - {pointer}: {before}\n"),
            ChangeKind::Changed => format!("  ~ {pointer}: {before} -> {after}\n"),
            ChangeKind::Order => format!("  ~ {pointer}: the order {before} -> {after}\n"),
        };
        text += &line;
    }
    if let Some(more) = difference.changes.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {more} more");
    }
    text
}

/// A value in short.
fn value(value: Option<&Value>) -> String {
    escaped_json(&shortened(&value.map(Value::to_string).unwrap_or_default())).into_owned()
}

/// The beginning of a text that may be of any length.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
