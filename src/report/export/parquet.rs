//! `parquet`: a row per request, with the columns of `--save-detailed` under the same names, for pandas, Polars and DuckDB.
//!
//! Times and durations (`*_ms`) are doubles, counts are whole numbers of 64 bits, remarks one text with blanks between them
//! and `event_ms` a list, null without `--save-chunks`. What did not happen or is not known is null. The feature `parquet` has
//! it built in.

use super::{Form, Needs};

pub(super) const FORM: Form = Form {
    name: "parquet",
    what: "a row per request in an Apache Parquet file, with the columns of csv-records",
    is_folder: false,
    is_built_in: cfg!(feature = "parquet"),
    needs: Needs::Records,
    write: writing::write,
};

#[cfg(not(feature = "parquet"))]
mod writing {
    use crate::report::export::{Error, Sink, Source};

    /// Never asked: a form that is not built in is refused before.
    pub(super) fn write(_: &Source<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        Err(Error::Unwritable("this tokload cannot write Parquet files".to_owned()))
    }
}

#[cfg(feature = "parquet")]
mod writing {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex, PoisonError};

    use parquet::basic::Compression;
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use parquet::errors::ParquetError;
    use parquet::file::metadata::KeyValue;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::parser::parse_message_type;
    use serde_json::Value;

    use crate::report::export::{Error, Sink, Source, records_file, rows};

    /// What a column holds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Kind {
        Count,
        Number,
        Numbers,
        Text,
    }

    /// The columns, in the order of `--save-detailed`.
    pub(super) const COLUMNS: [(&str, Kind); 45] = [
        ("level", Kind::Count),
        ("label", Kind::Text),
        ("index", Kind::Count),
        ("session", Kind::Count),
        ("turn", Kind::Count),
        ("endpoint", Kind::Count),
        ("replica", Kind::Count),
        ("model", Kind::Count),
        ("phase", Kind::Text),
        ("outcome", Kind::Text),
        ("kind", Kind::Text),
        ("status", Kind::Count),
        ("remarks", Kind::Text),
        ("plan_ms", Kind::Number),
        ("permit_ms", Kind::Number),
        ("start_ms", Kind::Number),
        ("conn_ms", Kind::Number),
        ("sent_ms", Kind::Number),
        ("byte_ms", Kind::Number),
        ("first_ms", Kind::Number),
        ("answer_ms", Kind::Number),
        ("last_ms", Kind::Number),
        ("end_ms", Kind::Number),
        ("kernel_first_ms", Kind::Number),
        ("kernel_answer_ms", Kind::Number),
        ("kernel_last_ms", Kind::Number),
        ("cap_wait_ms", Kind::Number),
        ("schedule_delay_ms", Kind::Number),
        ("ttft_ms", Kind::Number),
        ("ttfa_ms", Kind::Number),
        ("tpot_ms", Kind::Number),
        ("tpot_adj_ms", Kind::Number),
        ("e2e_ms", Kind::Number),
        ("stream_ms", Kind::Number),
        ("stall_ms", Kind::Number),
        ("kernel_stall_ms", Kind::Number),
        ("prompt_tokens", Kind::Count),
        ("prompt_source", Kind::Text),
        ("output_tokens", Kind::Count),
        ("output_source", Kind::Text),
        ("cached_tokens", Kind::Count),
        ("reasoning_tokens", Kind::Count),
        ("events", Kind::Count),
        ("tokens_after_first", Kind::Count),
        ("event_ms", Kind::Numbers),
    ];

    /// Rows that are kept before they are written.
    const ROWS_OF_A_GROUP: usize = 65_536;

    pub(super) fn write(source: &Source<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        records_file(source, sink, file)
    }

    fn file(source: &Source<'_>, out: &mut dyn Write) -> Result<(), Error> {
        let written = Shared::default();
        let schema = parse_message_type(&schema()).map_err(unwritable)?;
        let about = |key: &str, value: String| KeyValue { key: key.to_owned(), value: Some(value) };
        let run = &source.loaded.run;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("tokload {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(vec![
                about("tokload.created", run.created.clone()),
                about("tokload.label", run.label.clone().unwrap_or_default()),
                about(
                    "tokload.times",
                    "ms since the first planned send of the request's level; durations in ms".to_owned(),
                ),
            ]))
            .build();
        let mut writer = SerializedFileWriter::new(written.clone(), Arc::new(schema), Arc::new(properties))
            .map_err(unwritable)?;
        let mut group = Group::default();
        rows::each(source.loaded, &mut |cells| {
            group.add(&cells);
            if group.rows >= ROWS_OF_A_GROUP {
                group.write(&mut writer).map_err(io::Error::other)?;
                written.move_to(out)?;
            }
            Ok(())
        })?;
        if group.rows > 0 {
            group.write(&mut writer).map_err(unwritable)?;
        }
        writer.close().map_err(unwritable)?;
        written.move_to(out).map_err(|error| Error::Unwritable(error.to_string()))
    }

    fn unwritable(error: ParquetError) -> Error {
        Error::Unwritable(error.to_string())
    }

    fn schema() -> String {
        let columns = COLUMNS.map(|(name, kind)| match kind {
            Kind::Count => format!("optional int64 {name};"),
            Kind::Number => format!("optional double {name};"),
            Kind::Numbers => {
                format!(
                    "optional group {name} (LIST) {{ repeated group list {{ required double element; }} }}"
                )
            }
            Kind::Text => format!("optional binary {name} (UTF8);"),
        });
        format!("message requests {{ {} }}", columns.join(" "))
    }

    /// The values of a column with how deep each is defined, and of lists where each begins.
    #[derive(Default)]
    struct Column {
        counts: Vec<i64>,
        numbers: Vec<f64>,
        texts: Vec<ByteArray>,
        definitions: Vec<i16>,
        repetitions: Vec<i16>,
    }

    #[derive(Default)]
    struct Group {
        rows: usize,
        columns: Vec<Column>,
    }

    impl Group {
        fn add(&mut self, cells: &[(String, Value)]) {
            self.columns.resize_with(COLUMNS.len(), Column::default);
            for ((name, kind), column) in COLUMNS.iter().zip(&mut self.columns) {
                let value =
                    cells.iter().find(|(head, _)| head == name).map_or(&Value::Null, |(_, value)| value);
                column.add(*kind, value);
            }
            self.rows += 1;
        }

        fn write<W: Write + Send>(
            &mut self,
            writer: &mut SerializedFileWriter<W>,
        ) -> Result<(), ParquetError> {
            let mut group = writer.next_row_group()?;
            for ((_, kind), column) in COLUMNS.iter().zip(std::mem::take(&mut self.columns)) {
                column.write(*kind, &mut group)?;
            }
            group.close()?;
            self.rows = 0;
            Ok(())
        }
    }

    impl Column {
        fn add(&mut self, kind: Kind, value: &Value) {
            let is_known = match (kind, value) {
                (_, Value::Null) => false,
                (Kind::Count, value) => {
                    // Larger than any number of requests.
                    let count = value.as_i64().or_else(|| value.as_u64().map(|_| i64::MAX));
                    self.counts.extend(count);
                    count.is_some()
                }
                (Kind::Number, value) => {
                    self.numbers.extend(value.as_f64());
                    value.as_f64().is_some()
                }
                (Kind::Numbers, value) => return self.add_list(value.as_array().map_or(&[], Vec::as_slice)),
                (Kind::Text, value) => {
                    let text = match value {
                        Value::String(text) => text.clone(),
                        Value::Array(items) => {
                            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
                        }
                        other => other.to_string(),
                    };
                    self.texts.push(ByteArray::from(text.into_bytes()));
                    true
                }
            };
            self.definitions.push(i16::from(is_known));
            self.repetitions.push(0);
        }

        /// 1 is a list without items, 2 an item.
        fn add_list(&mut self, items: &[Value]) {
            if items.is_empty() {
                self.definitions.push(1);
                self.repetitions.push(0);
            }
            for (place, item) in items.iter().enumerate() {
                self.numbers.push(item.as_f64().unwrap_or(f64::NAN));
                self.definitions.push(2);
                self.repetitions.push(i16::from(place > 0));
            }
        }

        fn write<W: Write + Send>(
            self,
            kind: Kind,
            group: &mut SerializedRowGroupWriter<'_, W>,
        ) -> Result<(), ParquetError> {
            let missing = || ParquetError::General("a column too many".to_owned());
            let mut column = group.next_column()?.ok_or_else(missing)?;
            let definitions = Some(self.definitions.as_slice());
            match kind {
                Kind::Count => {
                    column.typed::<Int64Type>().write_batch(&self.counts, definitions, None)?;
                }
                Kind::Number => {
                    column.typed::<DoubleType>().write_batch(&self.numbers, definitions, None)?;
                }
                Kind::Numbers => {
                    let repetitions = Some(self.repetitions.as_slice());
                    column.typed::<DoubleType>().write_batch(&self.numbers, definitions, repetitions)?;
                }
                Kind::Text => {
                    column.typed::<ByteArrayType>().write_batch(&self.texts, definitions, None)?;
                }
            }
            column.close()
        }
    }

    /// What the library has written and the file has not yet: the library wants to own what it writes to.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Shared {
        fn move_to(&self, out: &mut dyn Write) -> io::Result<()> {
            let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            out.write_all(&bytes)?;
            bytes.clear();
            Ok(())
        }
    }

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
