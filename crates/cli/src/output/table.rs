//! Tables as Go's `text/tabwriter` aligns them. Main function: [`align`]; [`Growing`] is for rows that
//! come one after the other.

/// Blanks between two columns.
const PADDING: usize = 2;

/// Aligns the cells of a text: tabs end cells, newlines end rows. Text after the last tab of a row
/// belongs to no column, and a row with fewer cells ends the columns above it.
pub fn align(text: &str, min_width: usize) -> String {
    layout(text, min_width, PADDING)
}

/// The same without a minimum width, and with `padding` blanks between the columns.
pub fn align_apart(text: &str, padding: usize) -> String {
    layout(text, 0, padding)
}

fn layout(text: &str, min_width: usize, padding: usize) -> String {
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    let mut layout = Layout {
        rows: &rows,
        widths: Vec::new(),
        min_width,
        padding,
        out: String::with_capacity(text.len() * 2),
    };
    layout.format(0, rows.len());
    layout.out
}

/// The usual table: no minimum width.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = header.join("\t") + "\n";
    for row in rows {
        text.push_str(&row.join("\t"));
        text.push('\n');
    }
    align(&text, 0)
}

/// A table whose rows are not known from the start: its columns become wider, never narrower, as
/// those of `kubectl get -w`.
#[derive(Default)]
pub struct Growing {
    widths: Vec<usize>,
}

impl Growing {
    /// The next rows.
    pub fn rows(&mut self, rows: &[Vec<String>]) -> String {
        for row in rows {
            let columns = self.widths.len().max(row.len());
            self.widths.resize(columns, 0);
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut out = String::new();
        for row in rows {
            let last = row.len().saturating_sub(1);
            for (n, (cell, width)) in row.iter().zip(&self.widths).enumerate() {
                out.push_str(cell);
                if n < last {
                    let missing = width + PADDING - cell.chars().count();
                    out.extend(std::iter::repeat_n(' ', missing));
                }
            }
            out.push('\n');
        }
        out
    }
}

struct Layout<'a> {
    rows: &'a [Vec<&'a str>],
    widths: Vec<usize>,
    min_width: usize,
    padding: usize,
    out: String,
}

impl Layout<'_> {
    /// Formats the rows `from..to`, whose first columns have the widths known so far.
    fn format(&mut self, from: usize, to: usize) {
        let column = self.widths.len();
        let in_column = |row: usize| column + 1 < self.rows[row].len();
        let (mut start, mut row) = (from, from);
        while row < to {
            if !in_column(row) {
                row += 1;
                continue;
            }
            self.write(start, row);
            start = row;
            let mut width = self.min_width;
            while row < to && in_column(row) {
                width = width.max(self.rows[row][column].chars().count() + self.padding);
                row += 1;
            }
            self.widths.push(width);
            self.format(start, row);
            self.widths.pop();
            start = row;
        }
        self.write(start, to);
    }

    fn write(&mut self, from: usize, to: usize) {
        for row in &self.rows[from..to] {
            for (n, cell) in row.iter().enumerate() {
                self.out.push_str(cell);
                if let Some(width) = self.widths.get(n) {
                    let missing = width.saturating_sub(cell.chars().count());
                    self.out.extend(std::iter::repeat_n(' ', missing));
                }
            }
            self.out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let text = table(
            &["NAME", "STATUS"],
            [
                vec!["guestbook".into(), "Synced".into()],
                vec!["a".into(), String::new()],
            ],
        );
        assert_eq!(text, "NAME       STATUS\nguestbook  Synced\na          \n");
    }

    #[test]
    fn empty_columns_keep_their_padding_and_the_last_cell_is_never_padded() {
        assert_eq!(align("a\t\tb\nlong\t\tc\n", 0), "a       b\nlong    c\n");
        assert_eq!(align("a\tb\n", 5), "a    b\n");
    }

    #[test]
    fn a_shorter_row_ends_the_columns() {
        let history =
            "SOURCE\thttps://example.com/a-long-url\nID\tDATE\tREVISION\n10\tyesterday\tmain\n";
        assert_eq!(
            align(history, 0),
            "SOURCE  https://example.com/a-long-url\nID      DATE       REVISION\n10      yesterday  main\n"
        );
        assert_eq!(
            align("aaaa\tb\n\nc\td\n", 0),
            "aaaa  b\n\nc  d\n",
            "an empty row parts two tables"
        );
    }

    #[test]
    fn rows_that_come_later_keep_to_the_columns() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let first = [row(["NAME", "STATUS"]), row(["web", "OutOfSync"])];
        let mut growing = Growing::default();
        let usual = table(&["NAME", "STATUS"], [row(["web", "OutOfSync"])]);
        assert_eq!(growing.rows(&first), usual);
        assert_eq!(growing.rows(&[row(["a", "Synced"])]), "a     Synced\n");
        let long = row(["guestbook", "Synced"]);
        assert_eq!(growing.rows(&[long]), "guestbook  Synced\n");
        assert_eq!(growing.rows(&[row(["web", ""])]), "web        \n");
    }

    #[test]
    fn width_is_counted_in_characters() {
        assert_eq!(align("├─Pod\tx\nabcdef\ty\n", 0), "├─Pod   x\nabcdef  y\n");
    }
}
