//! Tables of a Markdown page between marks: some columns come from the server, the last ones are written by hand.

use std::collections::BTreeMap;

/// A table: its headings, and rows without the columns that are written by hand.
pub(super) struct Table {
    /// The name in the marks around it.
    pub(super) part: &'static str,
    pub(super) headings: &'static [&'static str],
    /// The headings of the columns that are written by hand.
    pub(super) by_hand: &'static [&'static str],
    /// The first cell of a row is its key.
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    /// The page with this table brought up to date. Cells that are written by hand stay with the key of their row.
    ///
    /// # Errors
    /// The page has no place for the table.
    pub(super) fn put_into(&self, page: &str) -> Result<String, String> {
        let (before, old, after) = self.cut(page)?;
        let kept = self.kept(old);
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let headings = self.headings.iter().chain(self.by_hand).map(|heading| (*heading).to_owned());
        let mut text = line(headings.collect());
        text += &format!("|{}\n", "---|".repeat(self.headings.len() + self.by_hand.len()));
        for row in &self.rows {
            let mut cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
            let key = cells.first().cloned().unwrap_or_default();
            let by_hand = kept.get(key.as_str()).cloned().unwrap_or_default();
            cells.extend((0..self.by_hand.len()).map(|at| by_hand.get(at).cloned().unwrap_or_default()));
            text += &line(cells);
        }
        Ok(format!("{before}{}\n\n{text}\n{}{after}", self.begin(), self.end()))
    }

    /// What is missing from the page or is in it without reason, row by row, and cells that are still to be written.
    pub(super) fn faults(&self, page: &str) -> Vec<String> {
        let (_, old, _) = match self.cut(page) {
            Ok(parts) => parts,
            Err(error) => return vec![error],
        };
        let (there, kept) = (rows(old), self.kept(old));
        let mut faults = Vec::new();
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
            let key = cells.first().map(String::as_str).unwrap_or_default();
            match there.iter().find(|row| row.first().is_some_and(|known| known == key)) {
                None => faults.push(format!("{}: the page has no row {key}", self.part)),
                Some(row) if !row.starts_with(&cells) => {
                    faults.push(format!("{}: the row {key} should begin with {cells:?}", self.part));
                }
                Some(_) => {}
            }
            for (at, heading) in self.by_hand.iter().enumerate() {
                if kept.get(key).and_then(|cells| cells.get(at)).is_none_or(String::is_empty) {
                    faults.push(format!("{}: say of {key} by hand: {heading}", self.part));
                }
            }
        }
        for row in &there {
            let key = row.first().map(String::as_str).unwrap_or_default();
            if !self.rows.iter().any(|row| row.first().is_some_and(|cell| escaped(cell) == key)) {
                faults.push(format!("{}: the server has nothing for the row {key}", self.part));
            }
        }
        faults
    }

    fn begin(&self) -> String {
        format!("<!-- {}: from the server -->", self.part)
    }

    fn end(&self) -> String {
        format!("<!-- {}: end -->", self.part)
    }

    /// The page before, between and after the marks.
    fn cut<'a>(&self, page: &'a str) -> Result<(&'a str, &'a str, &'a str), String> {
        let missing = |mark: &str| format!("the page has no line {mark}");
        let (before, rest) = page.split_once(&self.begin()).ok_or_else(|| missing(&self.begin()))?;
        let (old, after) = rest.split_once(&self.end()).ok_or_else(|| missing(&self.end()))?;
        Ok((before, old, after))
    }

    /// Cells that were written by hand, by the key of their row.
    fn kept(&self, old: &str) -> BTreeMap<String, Vec<String>> {
        let by_hand = |row: Vec<String>| {
            let key = row.first()?.clone();
            Some((key, row.get(row.len().checked_sub(self.by_hand.len())?..)?.to_vec()))
        };
        rows(old).into_iter().filter_map(by_hand).collect()
    }
}

/// The rows of a table, without its two lines of headings.
fn rows(table: &str) -> Vec<Vec<String>> {
    let lines = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    lines.skip(1).map(cells).collect()
}

/// The cells of a row; a bar with a backslash before it is no end of a cell.
fn cells(row: &str) -> Vec<String> {
    let mut cells: Vec<String> = Vec::new();
    let mut goes_on = false;
    for part in row.split('|') {
        match cells.last_mut() {
            Some(cell) if goes_on => {
                cell.push('|');
                cell.push_str(part);
            }
            _ => cells.push(part.to_owned()),
        }
        goes_on = part.ends_with('\\');
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|").replace('\n', " ").trim().to_owned()
}

#[test]
fn tables_are_checked_in_both_directions_and_keep_what_was_written() {
    let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
    let table = Table {
        part: "tools",
        headings: &["tool", "about"],
        by_hand: &["use"],
        rows: vec![row(&["`a`", "A | a"]), row(&["`b`", "B"])],
    };
    let empty = "x\n<!-- tools: from the server -->\n<!-- tools: end -->\ny";
    assert_eq!(table.faults("nothing").len(), 1);
    assert_eq!(table.faults(empty).len(), 4, "two rows, and two cells");
    let page = table.put_into(empty).unwrap();
    assert_eq!(table.faults(&page), ["tools: say of `a` by hand: use", "tools: say of `b` by hand: use"]);
    let page = page.replace("A \\| a |  |", "A \\| a | one \\| two |").replace("B |  |", "B | three |");
    assert_eq!(table.faults(&page), [""; 0]);
    assert_eq!(table.put_into(&page).unwrap(), page);
    let stale = page.replace("`b`", "`c`");
    assert_eq!(
        table.faults(&stale),
        [
            "tools: the page has no row `b`",
            "tools: say of `b` by hand: use",
            "tools: the server has nothing for the row `c`"
        ]
    );
    let other = page.replace("B |", "Bee |");
    assert_eq!(table.faults(&other), ["tools: the row `b` should begin with [\"`b`\", \"B\"]"]);
    assert_eq!(table.put_into(&other).unwrap(), page);
}
