//! Tables in text: Markdown as it was printed or pasted, and CSV. What a column means is known to the formats.

use csv_core::ReadRecordResult;

use super::Error;

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Its line in the file, from 1.
    pub(super) line: usize,
    /// Its cells under the names of their columns.
    pub(super) cells: Vec<(String, String)>,
}

impl Row {
    /// The cell of this column.
    pub(super) fn get(&self, column: &str) -> Option<&str> {
        self.cells.iter().find(|(name, _)| name == column).map(|(_, cell)| cell.as_str())
    }

    /// The cell of this column, which must be there.
    pub(super) fn needed(&self, column: &str) -> Result<&str, Error> {
        self.get(column).ok_or_else(|| Error::Missing { key: column.to_owned() })
    }

    /// The number in this column.
    pub(super) fn number(&self, column: &str) -> Result<f64, Error> {
        let text = self.needed(column)?;
        text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(|| self.wrong(column, text))
    }

    /// The whole number in this column.
    pub(super) fn count(&self, column: &str) -> Result<u64, Error> {
        let text = self.needed(column)?;
        text.parse().map_err(|_| self.wrong(column, text))
    }

    /// What to say of a cell that cannot be.
    pub(super) fn wrong(&self, column: &str, text: &str) -> Error {
        let seen: String = text.chars().take(40).collect();
        Error::Value {
            key: format!("line {}, {column}", self.line),
            wrong: format!("'{seen}' is no such value"),
        }
    }
}

/// The rows of all tables whose header has the `columns`; lines that are no rows are passed over.
///
/// # Errors
/// A row that has not as many cells as its header: the table was cut off.
pub(super) fn markdown(text: &str, columns: &[&str]) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    let mut head: Option<Vec<String>> = None;
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        let Some(inner) = line.strip_prefix('|') else {
            // A table ends with its rows; the next one has a header of its own.
            head = None;
            continue;
        };
        let is_whole = inner.ends_with('|');
        let cells: Vec<String> =
            inner.strip_suffix('|').unwrap_or(inner).split('|').map(|cell| cell.trim().to_owned()).collect();
        if is_whole && columns.iter().all(|column| cells.iter().any(|cell| cell == column)) {
            head = Some(cells);
            continue;
        }
        let Some(head) = &head else { continue };
        if cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':'))) {
            continue;
        }
        if !is_whole || cells.len() != head.len() {
            let wrong = format!("{} of {} cells: the table was cut off", cells.len(), head.len());
            return Err(Error::Value { key: format!("line {}", place + 1), wrong });
        }
        rows.push(Row { line: place + 1, cells: head.iter().cloned().zip(cells).collect() });
    }
    Ok(rows)
}

/// The rows of a CSV text, whose first line has the names of the columns.
///
/// # Errors
/// A row that has not as many cells as the first line: the file was cut off.
pub(super) fn csv(text: &str) -> Result<Vec<Row>, Error> {
    let mut lines = records(text).into_iter();
    let Some((_, head)) = lines.next() else { return Err(Error::Empty) };
    lines
        .filter(|(_, cells)| cells.iter().any(|cell| !cell.trim().is_empty()))
        // The header again: results were put behind one another.
        .filter(|(_, cells)| *cells != head)
        .map(|(line, cells)| {
            if cells.len() != head.len() {
                let wrong = format!("{} of {} cells: the file was cut off", cells.len(), head.len());
                return Err(Error::Value { key: format!("line {line}"), wrong });
            }
            Ok(Row { line, cells: head.iter().cloned().zip(cells).collect() })
        })
        .collect()
}

/// Each record with the number of its line.
fn records(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut reader = csv_core::Reader::new();
    let mut input = text.as_bytes();
    // No field is longer than all of the text, and there are no more ends than bytes.
    let mut field = vec![0; text.len() + 1];
    let mut ends = vec![0; text.len() + 1];
    let mut all = Vec::new();
    loop {
        let line = usize::try_from(reader.line()).unwrap_or(usize::MAX);
        let (result, read, written, fields) = reader.read_record(input, &mut field, &mut ends);
        input = &input[read..];
        match result {
            // The end of the input is told by reading once more from nothing.
            ReadRecordResult::InputEmpty if read > 0 => {
                let (_, _, more, ended) = reader.read_record(&[], &mut field[written..], &mut ends[fields..]);
                all.extend(record(line, &field[..written + more], &ends[..fields + ended]));
                return all;
            }
            ReadRecordResult::Record => all.extend(record(line, &field[..written], &ends[..fields])),
            _ => return all,
        }
    }
}

fn record(line: usize, field: &[u8], ends: &[usize]) -> Option<(usize, Vec<String>)> {
    let mut start = 0;
    let cells = ends.iter().map(|end| {
        let cell = String::from_utf8_lossy(field.get(start..*end).unwrap_or_default()).into_owned();
        start = *end;
        cell
    });
    let cells: Vec<String> = cells.collect();
    (!cells.is_empty()).then_some((line, cells))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(rows: &[Row], column: &str) -> Vec<String> {
        rows.iter().map(|row| row.needed(column).unwrap().to_owned()).collect()
    }

    #[test]
    fn tables_are_found_between_other_lines() {
        let text =
            "log\n| a | t/s |\n|---|---:|\n| x | 1 |\nbuild: 5\n\n| t/s | b | a |\n| 2 | | y |\n| q | r |";
        assert!(matches!(markdown(text, &["a", "t/s"]), Err(Error::Value { key, .. }) if key == "line 9"));
        let rows = markdown(text.rsplit_once('\n').unwrap().0, &["a", "t/s"]).unwrap();
        assert_eq!(
            (cells(&rows, "a"), cells(&rows, "t/s")),
            (vec!["x".into(), "y".into()], vec!["1".into(), "2".into()])
        );
        assert_eq!((rows[1].line, rows[0].number("t/s").unwrap()), (8, 1.0));
        assert!(matches!(rows[1].number("b"), Err(Error::Value { key, .. }) if key == "line 8, b"));
        assert_eq!(markdown("| x | y |\n| 1 | 2 |", &["a"]).unwrap(), []);
        assert!(markdown("| a |\n| 1", &["a"]).is_err());
    }

    #[test]
    fn csv_has_a_row_for_each_line() {
        for text in ["a,b\n1,\"2, 3\"\na,b\n4,5", "a,b\r\n1,\"2, 3\"\r\n\r\n4,5\r\n"] {
            let rows = csv(text).unwrap();
            assert_eq!(
                (cells(&rows, "a"), cells(&rows, "b")),
                (vec!["1".into(), "4".into()], vec!["2, 3".into(), "5".into()])
            );
        }
        assert!(
            matches!(csv("a,b\n1,2\n3"), Err(Error::Value { key, wrong }) if key == "line 3" && wrong.contains("cut off"))
        );
        assert!(matches!(csv(""), Err(Error::Empty)));
    }
}
