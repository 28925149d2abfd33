//! The page in `docs`: prose by hand, tables by us, between marks.

use std::fs;

use anyhow::{Context, Result};

use crate::shell;

const PAGE: &str = "docs/benchmarks.md";
const PICTURE: &str = "docs/benchmarks.svg";

/// Replaces what the page says of a part.
pub(super) fn update(part: &str, text: &str) -> Result<()> {
    let path = shell::root().join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    let page = replaced(&page, part, text).with_context(|| format!("{PAGE} has no place for {part}"))?;
    fs::write(&path, page).with_context(|| format!("cannot write {PAGE}"))
}

pub(super) fn write_picture(picture: &str) -> Result<()> {
    fs::write(shell::root().join(PICTURE), picture).with_context(|| format!("cannot write {PICTURE}"))
}

fn replaced(page: &str, part: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(&format!("<!-- {part}: measured -->\n"))?;
    let (_, after) = rest.split_once(&format!("<!-- {part}: end -->"))?;
    let text = text.trim();
    Some(format!("{before}<!-- {part}: measured -->\n\n{text}\n\n<!-- {part}: end -->{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = "a\n<!-- x: measured -->\nold\n<!-- x: end -->\nb\n";
        let once = replaced(page, "x", "new\n").unwrap();
        assert_eq!(once, "a\n<!-- x: measured -->\n\nnew\n\n<!-- x: end -->\nb\n");
        assert_eq!(replaced(&once, "x", "new").unwrap(), once);
        assert_eq!(replaced(page, "y", "new"), None);
    }

    #[test]
    fn the_page_has_a_place_for_every_part() {
        let page = fs::read_to_string(shell::root().join(PAGE)).unwrap();
        for (part, _) in super::super::PARTS {
            assert!(replaced(&page, part, "").is_some(), "{part}");
        }
    }
}
