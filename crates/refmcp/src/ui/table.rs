//! Rows of text in columns.

use super::style::Paint;
use super::text::width;
use super::wrap::{widest_word, wrap};

/// Columns between two columns.
const GAP: usize = 2;

/// The narrowest that the last column is made before rows become several lines.
const NARROWEST: usize = 16;

/// A table: a heading for each column, and rows of as many cells. Cells are one line each, and harmless already.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; cells beyond the headings are left out.
    pub(crate) fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.headings.len(), String::new());
        self.rows.push(cells);
    }

    /// The table as text, in no more than so many columns of the terminal where that can be done. Nothing is cut: the
    /// last column is broken into lines, and where that is not enough each row becomes a few lines.
    pub(crate) fn render(&self, paint: Paint, most: Option<usize>) -> String {
        let shown: Vec<usize> = (0..self.headings.len()).filter(|column| !self.is_empty(*column)).collect();
        let mut widths: Vec<usize> = shown.iter().map(|column| self.width(*column)).collect();
        let over = most.map_or(0, |most| {
            let gaps = GAP * widths.len().saturating_sub(1);
            (widths.iter().sum::<usize>() + gaps).saturating_sub(most)
        });
        if over > 0 {
            let (Some(last), Some(column)) = (widths.last_mut(), shown.last()) else { return String::new() };
            let narrower = last.saturating_sub(over);
            if narrower < NARROWEST.max(self.widest_word(*column)) {
                return self.stacked(paint, &shown, most.unwrap_or(usize::MAX));
            }
            *last = narrower;
        }
        let heading = |column: usize| self.headings.get(column).copied().unwrap_or_default().to_owned();
        let mut out = line(&shown, &widths, &heading, &|text| paint.strong(text));
        for row in &self.rows {
            let cell = |column: usize| row.get(column).cloned().unwrap_or_default();
            let last = shown.last().map(|column| cell(*column)).unwrap_or_default();
            let mut pieces = wrap(&last, widths.last().copied().unwrap_or(usize::MAX)).into_iter();
            let first = pieces.next().unwrap_or_default();
            let with_first = |column: usize| {
                if Some(&column) == shown.last() { first.clone() } else { cell(column) }
            };
            out.push_str(&line(&shown, &widths, &with_first, &str::to_owned));
            for piece in pieces {
                let only = |column: usize| {
                    if Some(&column) == shown.last() { piece.clone() } else { String::new() }
                };
                out.push_str(&line(&shown, &widths, &only, &str::to_owned));
            }
        }
        out
    }

    /// Every row as a few lines: the first cell, and below it the others, each after its heading.
    fn stacked(&self, paint: Paint, shown: &[usize], most: usize) -> String {
        let label = |column: usize| {
            self.headings.get(column).map(|heading| heading.to_lowercase()).unwrap_or_default()
        };
        let labels = shown.iter().skip(1).map(|column| width(&label(*column))).max().unwrap_or(0);
        let indent = GAP + labels + GAP;
        let mut out = String::new();
        for row in &self.rows {
            for (place, column) in shown.iter().enumerate() {
                let cell = row.get(*column).map(String::as_str).unwrap_or_default();
                if place == 0 {
                    out.push_str(&format!("{}\n", paint.strong(cell)));
                    continue;
                }
                if cell.is_empty() {
                    continue;
                }
                let label = label(*column);
                let mut before =
                    format!("  {label}{}", " ".repeat(labels.saturating_sub(width(&label)) + GAP));
                for piece in wrap(cell, most.saturating_sub(indent)) {
                    out.push_str(&format!("{before}{piece}\n"));
                    before = " ".repeat(indent);
                }
            }
        }
        out
    }

    fn widest_word(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| widest_word(cell)).max().unwrap_or(0)
    }

    /// Whether no row has anything in this column.
    fn is_empty(&self, column: usize) -> bool {
        self.rows.iter().all(|row| row.get(column).is_none_or(String::is_empty))
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
        let heading = self.headings.get(column).map_or(0, |heading| width(heading));
        cells.max().unwrap_or(0).max(heading)
    }
}

/// One line of a table.
fn line(
    shown: &[usize],
    widths: &[usize],
    cell: &dyn Fn(usize) -> String,
    style: &dyn Fn(&str) -> String,
) -> String {
    let mut line = String::new();
    for (column, width_here) in shown.iter().zip(widths) {
        let text = cell(*column);
        line.push_str(&style(&text));
        line.push_str(&" ".repeat(width_here.saturating_sub(width(&text)) + GAP));
    }
    line.trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", "NOTE", "ABOUT"]);
        table.row(vec!["a".to_owned(), String::new(), "short".to_owned()]);
        table.row(vec!["漢字".to_owned(), String::new(), "a rather long text about it".to_owned()]);
        table
    }

    #[test]
    fn columns_stand_below_each_other_and_empty_ones_are_left_out() {
        let text = table().render(Paint::PLAIN, None);
        assert_eq!(text, "NAME  ABOUT\na     short\n漢字  a rather long text about it\n");
    }

    #[test]
    fn the_last_column_is_broken_into_lines() {
        let text = table().render(Paint::PLAIN, Some(24));
        assert_eq!(text, "NAME  ABOUT\na     short\n漢字  a rather long text\n      about it\n");
    }

    #[test]
    fn nothing_is_cut_where_there_is_no_room_for_columns() {
        let text = table().render(Paint::PLAIN, Some(18));
        assert_eq!(
            text,
            "a\n  about  short\n漢字\n  about  a rather\n         long text\n         about it\n"
        );
        let mut table = Table::new(&["URI", "NAME"]);
        table.row(vec!["file:///a/very/long/path/to/something.txt".to_owned(), "Something".to_owned()]);
        for most in [1, 20, 45] {
            let text = table.render(Paint::PLAIN, Some(most));
            assert_eq!(text, "file:///a/very/long/path/to/something.txt\n  name  Something\n", "{most}");
        }
    }

    #[test]
    fn colours_do_not_count() {
        let coloured = table().render(Paint::COLOURED, None);
        assert!(coloured.contains("\x1b[1mNAME\x1b[0m  \x1b[1mABOUT"), "{coloured:?}");
    }
}
