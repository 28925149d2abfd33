//! Rows of text in columns.

use crate::ui::style::Paint;
use crate::ui::text::{one_line, widest_word, width, wrap};

/// Columns between two columns.
const GAP: usize = 2;

/// The narrowest that the last column is made before rows become several lines.
const NARROWEST: usize = 16;

/// A table: a heading for each column, and rows of as many cells, each on one line and harmless.
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, with a cell for each heading.
    pub(crate) fn row<const CELLS: usize>(&mut self, cells: [&str; CELLS]) {
        self.rows.push(cells.map(|cell| one_line(cell).into_owned()).to_vec());
    }

    /// The table as text, or this line where it has no rows.
    pub(crate) fn render_or(&self, none: &str, paint: Paint, most: Option<usize>) -> String {
        if self.rows.is_empty() { format!("{none}\n") } else { self.render(paint, most) }
    }

    /// The table as text, in no more than so many columns of the terminal where that can be done. Nothing is cut: the
    /// last column is broken into lines, and where that is not enough each row becomes a few lines.
    pub(crate) fn render<'a>(&'a self, paint: Paint, most: Option<usize>) -> String {
        let mut columns: Vec<Column<'a>> = (0..self.headings.len())
            .map(|index| self.column(index))
            .filter(|column| !column.is_empty())
            .collect();
        let gaps = GAP * columns.len().saturating_sub(1);
        let width = columns.iter().map(|column| column.width).sum::<usize>() + gaps;
        let over = most.map_or(0, |most| width.saturating_sub(most));
        let Some(last) = columns.last_mut() else { return String::new() };
        if over > 0 {
            let narrower = last.width.saturating_sub(over);
            let widest_word = last.cells.iter().map(|cell| widest_word(cell)).max().unwrap_or(0);
            if narrower < NARROWEST.max(widest_word) {
                return stacked(paint, &columns, most.unwrap_or(usize::MAX));
            }
            last.width = narrower;
        }
        let Some((last, others)) = columns.split_last() else { return String::new() };
        let headings = columns.iter().map(|column| (column.heading, column.width));
        let mut out = line(headings, &|text| paint.strong(text));
        for (row, text) in last.cells.iter().enumerate() {
            for (number, piece) in wrap(text, last.width).iter().enumerate() {
                let cell = |column: &Column<'a>| column.cells.get(row).copied().filter(|_| number == 0);
                let cells = others.iter().map(|column| (cell(column).unwrap_or_default(), column.width));
                out.push_str(&line(cells.chain([(piece.as_str(), last.width)]), &str::to_owned));
            }
        }
        out
    }

    fn column(&self, index: usize) -> Column<'_> {
        let heading = self.headings.get(index).copied().unwrap_or_default();
        let cells: Vec<&str> =
            self.rows.iter().map(|row| row.get(index).map(String::as_str).unwrap_or_default()).collect();
        let width = cells.iter().map(|cell| width(cell)).chain([width(heading)]).max().unwrap_or(0);
        Column { heading, cells, width }
    }
}

/// A column, with a cell of each row.
struct Column<'a> {
    heading: &'static str,
    cells: Vec<&'a str>,
    width: usize,
}

impl Column<'_> {
    fn is_empty(&self) -> bool {
        self.cells.iter().all(|cell| cell.is_empty())
    }
}

/// One line of cells, each with the width of its column.
fn line<'a>(cells: impl Iterator<Item = (&'a str, usize)>, style: &dyn Fn(&str) -> String) -> String {
    let mut line = String::new();
    for (text, columns) in cells {
        line.push_str(&style(text));
        line.push_str(&" ".repeat(columns.saturating_sub(width(text)) + GAP));
    }
    line.trim_end().to_owned()
        + "
"
}

/// Every row as a few lines: the first cell, and below it the others, each after its heading.
fn stacked(paint: Paint, columns: &[Column<'_>], most: usize) -> String {
    let Some((first, others)) = columns.split_first() else { return String::new() };
    let indent = GAP + others.iter().map(|column| width(column.heading)).max().unwrap_or(0) + GAP;
    let mut out = String::new();
    for (row, name) in first.cells.iter().enumerate() {
        out.push_str(&format!("{}\n", paint.strong(name)));
        for column in others {
            let cell = column.cells.get(row).copied().filter(|cell| !cell.is_empty());
            let pieces = cell.map(|cell| wrap(cell, most.saturating_sub(indent))).unwrap_or_default();
            let mut label = format!("  {}", column.heading.to_lowercase());
            for piece in pieces {
                out.push_str(&format!("{label}{}{piece}\n", " ".repeat(indent - width(&label))));
                label.clear();
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", "NOTE", "ABOUT"]);
        table.row(["a", "", "short"]);
        table.row(["漢字", "", "a rather long text about it"]);
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
        table.row(["file:///a/very/long/path/to/something.txt", "Something"]);
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
