//! Rows of text in columns.

use super::style::Paint;
use super::text::{truncate, width};

/// Columns between two columns.
const GAP: usize = 2;

/// The narrowest that a column is made to fit.
const NARROWEST: usize = 8;

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

    /// The table as text, in no more than so many columns of the terminal where that can be done.
    pub(crate) fn render(&self, paint: Paint, most: Option<usize>) -> String {
        let shown: Vec<usize> = (0..self.headings.len()).filter(|column| !self.is_empty(*column)).collect();
        let mut widths: Vec<usize> = shown.iter().map(|column| self.width(*column)).collect();
        if let Some(most) = most {
            fit(&mut widths, most);
        }
        let line = |cell: &dyn Fn(usize) -> String, style: &dyn Fn(&str) -> String| {
            let mut line = String::new();
            for (column, width_here) in shown.iter().zip(&widths) {
                let text = cell(*column);
                let text = truncate(&text, *width_here);
                line.push_str(&style(&text));
                line.push_str(&" ".repeat(width_here.saturating_sub(width(&text)) + GAP));
            }
            line.trim_end().to_owned() + "\n"
        };
        let heading = |column: usize| self.headings.get(column).copied().unwrap_or_default().to_owned();
        let mut out = line(&heading, &|text| paint.strong(text));
        for row in &self.rows {
            let cell = |column: usize| row.get(column).cloned().unwrap_or_default();
            out.push_str(&line(&cell, &str::to_owned));
        }
        out
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

/// Takes from the widest column until all fit, or none can be made narrower.
fn fit(widths: &mut [usize], most: usize) {
    let gaps = GAP * widths.len().saturating_sub(1);
    loop {
        let over = (widths.iter().sum::<usize>() + gaps).saturating_sub(most);
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > NARROWEST) else { return };
        if over == 0 {
            return;
        }
        *widest -= 1;
    }
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
    fn the_widest_column_gives_way() {
        let text = table().render(Paint::PLAIN, Some(20));
        assert_eq!(text, "NAME  ABOUT\na     short\n漢字  a rather long…\n");
        // Too narrow for anything: it is no less than readable.
        assert!(table().render(Paint::PLAIN, Some(3)).contains("a rathe…"));
    }

    #[test]
    fn colours_do_not_count() {
        let coloured = table().render(Paint::COLOURED, None);
        assert!(coloured.contains("\x1b[1mNAME\x1b[0m  \x1b[1mABOUT"), "{coloured:?}");
    }
}
