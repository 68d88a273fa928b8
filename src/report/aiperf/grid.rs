//! A table with ruled edges as Python's rich draws it: columns as wide as their cells, the widest ones narrowed and
//! wrapped where the line is too short.

use std::io::{self, Write};

/// How the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) title: String,
    pub(super) columns: Vec<(String, Side)>,
    /// A cell may have several lines.
    pub(super) rows: Vec<Vec<String>>,
}

impl Grid {
    /// Writes the table within `width` columns.
    pub(super) fn write(&self, width: usize, out: &mut impl Write) -> io::Result<()> {
        let n = self.columns.len();
        // An edge before each column and one behind the last.
        let widths = self.widths(width.saturating_sub(n + 1));
        let all = widths.iter().sum::<usize>() + n + 1;
        for line in wrapped(&self.title, all) {
            let left = all.saturating_sub(cells(&line)) / 2;
            writeln!(out, "{}", filled(&format!("{}{line}", " ".repeat(left)), all, Side::Left))?;
        }
        let rule = |left: &str, fill: &str, middle: &str, right: &str| {
            let parts: Vec<String> = widths.iter().map(|width| fill.repeat(*width)).collect();
            format!("{left}{}{right}", parts.join(middle))
        };
        writeln!(out, "{}", rule("┏", "━", "┳", "┓"))?;
        let heads: Vec<String> = self.columns.iter().map(|(head, _)| head.clone()).collect();
        self.row(&heads, &widths, "┃", out)?;
        writeln!(out, "{}", rule("┡", "━", "╇", "┩"))?;
        for row in &self.rows {
            self.row(row, &widths, "│", out)?;
        }
        writeln!(out, "{}", rule("└", "─", "┴", "┘"))
    }

    fn row(&self, row: &[String], widths: &[usize], edge: &str, out: &mut impl Write) -> io::Result<()> {
        let columns = row.iter().zip(widths);
        let lines: Vec<Vec<String>> =
            columns.map(|(cell, width)| wrapped(cell, width.saturating_sub(PADDING))).collect();
        for place in 0..lines.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = String::from(edge);
            for ((cell, width), (_, side)) in lines.iter().zip(widths).zip(&self.columns) {
                let text = cell.get(place).map_or("", String::as_str);
                line += &format!(" {} {edge}", filled(text, width.saturating_sub(PADDING), *side));
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// The width of each column with its padding; together at most `most`, where there is room for one letter each.
    fn widths(&self, most: usize) -> Vec<usize> {
        let wanted = (0..self.columns.len()).map(|place| {
            let of_rows = self.rows.iter().filter_map(|row| row.get(place));
            let texts = of_rows.map(String::as_str).chain([self.columns[place].0.as_str()]);
            texts.flat_map(str::lines).map(cells).max().unwrap_or(0) + PADDING
        });
        let wanted: Vec<usize> = wanted.collect();
        let mut widths = wanted.clone();
        while widths.iter().sum::<usize>() > most {
            let excess = widths.iter().sum::<usize>() - most;
            let widest = widths.iter().copied().max().unwrap_or(0);
            let next = widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(0);
            // Down to the next widest at most; columns alike share what is left.
            let at_most = excess.min(widest - next);
            let places: Vec<usize> = (0..widths.len()).filter(|place| widths[*place] == widest).collect();
            let (mut left, mut among) = (excess, places.len());
            for place in places {
                let share = (left as f64 / among as f64).round_ties_even() as usize;
                let taken = share.min(at_most).min(widths[place].saturating_sub(PADDING + 1));
                widths[place] -= taken;
                left -= taken;
                among -= 1;
            }
            if left == excess {
                break;
            }
        }
        widths
    }
}

/// A blank on either side.
const PADDING: usize = 2;

/// Columns of a terminal that `text` takes.
fn cells(text: &str) -> usize {
    console::measure_text_width(text)
}

/// `text` filled up with blanks to `width`.
fn filled(text: &str, width: usize, side: Side) -> String {
    let blanks = " ".repeat(width.saturating_sub(cells(text)));
    match side {
        Side::Left => format!("{text}{blanks}"),
        Side::Right => format!("{blanks}{text}"),
    }
}

/// The lines of `text`, broken between words and within words that are longer than `width`.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for part in text.split('\n') {
        let mut line = String::new();
        for word in part.split_inclusive(' ') {
            if cells(&line) + cells(word.trim_end()) > width && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            if cells(word.trim_end()) <= width {
                line.push_str(word);
                continue;
            }
            for letter in word.chars() {
                let mut bytes = [0; 4];
                if cells(&line) + cells(letter.encode_utf8(&mut bytes)) > width {
                    lines.push(std::mem::take(&mut line));
                }
                line.push(letter);
            }
        }
        lines.push(line);
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(columns: &[(&str, Side)], rows: &[&[&str]], width: usize) -> String {
        let grid = Grid {
            title: "T".to_owned(),
            columns: columns.iter().map(|(head, side)| ((*head).to_owned(), *side)).collect(),
            rows: rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect(),
        };
        let mut out = Vec::new();
        grid.write(width, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cells_stand_on_their_side_and_several_lines_go_below() {
        let expected = "      T      \n\
                        ┏━━━━━┳━━━━━┓\n\
                        ┃ abc ┃ d   ┃\n\
                        ┡━━━━━╇━━━━━┩\n\
                        │   x │ yyy │\n\
                        │  (s │     │\n\
                        └─────┴─────┘\n";
        let columns = [("abc", Side::Right), ("d", Side::Left)];
        assert_eq!(drawn(&columns, &[&["x\n(s", "yyy"]], 80), expected);
    }

    #[test]
    fn the_widest_column_is_narrowed_and_wrapped() {
        let expected = "       T       \n\
                        ┏━━━━━━━━━┳━━━┓\n\
                        ┃ a       ┃ b ┃\n\
                        ┡━━━━━━━━━╇━━━┩\n\
                        │ one two │ 1 │\n\
                        │ three   │   │\n\
                        │ longwor │   │\n\
                        │ dlong   │   │\n\
                        └─────────┴───┘\n";
        let columns = [("a", Side::Left), ("b", Side::Right)];
        assert_eq!(drawn(&columns, &[&["one two three longwordlong", "1"]], 15), expected);
        // Whatever the width, it ends.
        assert_eq!(drawn(&columns, &[&["one", "1"]], 0).lines().count(), 8);
    }
}
