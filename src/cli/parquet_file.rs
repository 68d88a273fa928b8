//! Parquet files as the JSON lines that the readers of data sets know.
//!
//! Owns the way from rows to lines; what the columns mean is known to the formats. The feature `parquet` has it built in.
//! A file is decoded as a whole, since any record of it may be wanted at any time: it takes the memory of its text.

use std::fs::File;
use std::io::Read as _;

/// Whether the file at `path` begins as Parquet does. One that cannot be read is none: whoever reads it says why.
pub(super) fn is_one(path: &str) -> bool {
    let mut beginning = [0; MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut beginning)).is_ok() && beginning == *MAGIC
}

const MAGIC: &[u8; 4] = b"PAR1";

/// The rows of the file at `path`, one JSON object a line, with all columns under their names or with `column` alone as
/// the prompt (a list as the messages of a chat).
///
/// # Errors
/// The file cannot be read, has no such column, or is longer than [`BYTES_MAX`].
#[cfg(feature = "parquet")]
pub(super) fn json_lines(path: &str, column: Option<&str>) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    // The library takes lengths in a broken file at their word and panics beyond what there is.
    let silent = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let decoded = std::panic::catch_unwind(|| rows::json_lines(file, column));
    std::panic::set_hook(silent);
    decoded.unwrap_or_else(|_| Err("is a broken Parquet file; give another copy of it".to_owned()))
}

/// As above, where it is not built in.
#[cfg(not(feature = "parquet"))]
pub(super) fn json_lines(_path: &str, _column: Option<&str>) -> Result<Vec<u8>, String> {
    Err("is a Parquet file, which this tokload cannot read; build one that can by cargo build --release --features \
         parquet, or write its rows as JSON lines"
        .to_owned())
}

#[cfg(feature = "parquet")]
mod rows {
    use std::sync::Arc;

    use parquet::file::reader::{ChunkReader, FileReader as _, SerializedFileReader};
    use parquet::record::reader::RowIter;
    use parquet::schema::types::Type;
    use serde_json::{Map, Value};

    pub(super) fn json_lines<F: ChunkReader + 'static>(
        file: F,
        column: Option<&str>,
    ) -> Result<Vec<u8>, String> {
        let broken = |error: parquet::errors::ParquetError| format!("{error}; give a readable Parquet file");
        let reader = SerializedFileReader::new(file).map_err(broken)?;
        let projection = column
            .map(|column| projection(reader.metadata().file_metadata().schema(), column))
            .transpose()?;
        let mut lines = Vec::new();
        let rows = RowIter::from_file_into(Box::new(reader)).project(projection).map_err(broken)?;
        for row in rows {
            let row = row.map_err(broken)?.to_json_value();
            let row = if column.is_some() { as_prompt(row) } else { row };
            serde_json::to_writer(&mut lines, &row).map_err(|error| error.to_string())?;
            lines.push(b'\n');
            if lines.len() > BYTES_MAX {
                return Err(
                    "holds more than 2 GiB of text; name one column by --dataset-column, or give a part"
                        .to_owned(),
                );
            }
        }
        Ok(lines)
    }

    /// The schema with one of its columns.
    fn projection(schema: &Type, column: &str) -> Result<Type, String> {
        let found = schema.get_fields().iter().find(|field| field.name() == column).ok_or_else(|| {
            let names: Vec<&str> = schema.get_fields().iter().map(|field| field.name()).collect();
            format!("has no column '{column}'; name one of {} by --dataset-column", names.join(", "))
        })?;
        let group = Type::group_type_builder(schema.name()).with_fields(vec![Arc::clone(found)]);
        group.build().map_err(|error| error.to_string())
    }

    fn as_prompt(row: Value) -> Value {
        let value = match row {
            Value::Object(columns) => columns.into_iter().next().map_or(Value::Null, |(_, value)| value),
            other => other,
        };
        let name = if value.is_array() { "messages" } else { "prompt" };
        Value::Object(Map::from_iter([(name.to_owned(), value)]))
    }

    const BYTES_MAX: usize = 2 << 30;
}

#[cfg(test)]
#[cfg(feature = "parquet")]
mod tests {
    use std::sync::Arc;

    use parquet::basic::{Compression, GzipLevel};
    use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// Two questions with the lengths of their answers.
    fn file(compression: Compression) -> Vec<u8> {
        let schema = "message schema { REQUIRED BYTE_ARRAY question (UTF8); REQUIRED INT32 output_tokens; }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
        let mut out = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut out, schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let texts = ["why?", "\"how\"?"].map(ByteArray::from);
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&[5, 9], None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        out
    }

    fn lines(bytes: &[u8], column: Option<&str>) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(is_one(path), bytes.starts_with(MAGIC));
        json_lines(path, column).map(|lines| String::from_utf8(lines).unwrap())
    }

    #[test]
    fn rows_become_lines_with_all_columns_or_one_as_the_prompt() {
        for compression in
            [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::GZIP(GzipLevel::default())]
        {
            let file = file(compression);
            let all = "{\"output_tokens\":5,\"question\":\"why?\"}\n{\"output_tokens\":9,\"question\":\"\\\"how\\\"?\"}\n";
            assert_eq!(lines(&file, None).unwrap(), all);
            let one = "{\"prompt\":\"why?\"}\n{\"prompt\":\"\\\"how\\\"?\"}\n";
            assert_eq!(lines(&file, Some("question")).unwrap(), one);
            let missing = lines(&file, Some("prompt")).unwrap_err();
            assert!(
                missing.contains("no column 'prompt'") && missing.contains("question, output_tokens"),
                "{missing}"
            );
        }
    }

    #[test]
    fn a_broken_file_is_told_or_read_and_never_a_panic() {
        let whole = file(Compression::SNAPPY);
        for place in 0..whole.len() {
            let mut broken = whole.clone();
            broken[place] ^= 0x5a;
            let _ = lines(&broken, Some("question"));
            assert!(lines(&whole[..place], None).is_err(), "cut at {place}");
        }
    }
}
