//! `--export parquet`: what is read back is what `--save-detailed` says. Built with the feature `parquet`.

use std::fs::{self, File};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::reader::RowIter;
use serde_json::Value;

use super::Dir;

#[test]
fn requests_come_back_as_they_are_in_the_lines() {
    let dir = Dir::new();
    let line = "simulate --ttft 50 --itl 10 -c 1,3 --num-prompts 9 --num-warmups 2 --random-output-len 5 --save-detailed -q";
    for (name, chunks) in [("with", " --save-chunks"), ("without", "")] {
        dir.tokload(&format!("{line}{chunks} --output-file {name}.json --export parquet={name}.parquet"))
            .shows(0);
        let lines = fs::read_to_string(dir.path(&format!("{name}.jsonl"))).unwrap();
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let reader =
            SerializedFileReader::new(File::open(dir.path(&format!("{name}.parquet"))).unwrap()).unwrap();
        let metadata = reader.metadata().file_metadata();
        assert_eq!(metadata.num_rows(), lines.len() as i64);
        assert!(metadata.created_by().unwrap().starts_with("tokload "));
        let columns: Vec<String> =
            metadata.schema().get_fields().iter().map(|field| field.name().to_owned()).collect();
        // Every key of a line is a column; of runs without times of events `event_ms` is a column of nulls.
        let mut keys: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
        let mut named: Vec<&String> =
            columns.iter().filter(|name| chunks.len() > 1 || *name != "event_ms").collect();
        keys.sort();
        named.sort();
        assert_eq!(named, keys);
        let rows = RowIter::from_file_into(Box::new(reader));
        for (row, line) in rows.map(|row| row.unwrap().to_json_value()).zip(&lines) {
            for (key, value) in line.as_object().unwrap() {
                match (key.as_str(), value) {
                    ("remarks", Value::Array(remarks)) => {
                        let text: Vec<&str> = remarks.iter().filter_map(Value::as_str).collect();
                        assert_eq!(row[key], text.join(" "));
                    }
                    (_, Value::Number(number)) => assert_eq!(row[key].as_f64(), number.as_f64(), "{key}"),
                    (_, value) => assert_eq!(row[key], *value, "{key}"),
                }
            }
            assert!(chunks.len() > 1 || row["event_ms"].is_null());
        }
    }
    dir.tokload("report with.json --export parquet=with.parquet").refuses(2, &["with.parquet", "--force"]);
    dir.tokload("simulate -c 1 --num-prompts 1 --no-records --output-file bare.json -q").shows(0);
    dir.tokload("report bare.json --export parquet=x.parquet").refuses(2, &["has no records", "parquet"]);
    assert!(!dir.names().iter().any(|name| name.starts_with("x.parquet")), "{:?}", dir.names());
}
