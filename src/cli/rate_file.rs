//! The file of a rate over time: read once, when the plan is made, so that the plan has all of it.

use std::fs::File;
use std::io::Read as _;

use super::args::RunArgs;
use super::failure::Failure;
use super::value;

/// The same options with the contents of the file of `--request-rate-series` in the place of its name.
pub(super) fn read_in(mut args: RunArgs) -> Result<RunArgs, Failure> {
    if let Some(series) = args.request_rate_series.as_mut().filter(|series| value::is_series_file(series)) {
        *series = read(series).map_err(|wrong| {
            Failure::bad(format!(
                "--request-rate-series {series}: {wrong}; name a readable file, .csv with columns time and rate or .json"
            ))
        })?;
    }
    Ok(args)
}

fn read(path: &str) -> Result<String, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    match read as u64 > BYTES_MAX {
        true => Err(format!("it has more than {} MB", BYTES_MAX / 1_000_000)),
        // One line of a table is not a series; without its end it would be read as one that was typed.
        false => Ok(text.trim_end().to_owned() + "\n"),
    }
}

/// Longest file: what is read becomes a part of the plan, and so of each result.
const BYTES_MAX: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn read_in_file(name: &str, text: &str) -> Result<RunArgs, String> {
        let directory = std::env::temp_dir().join(format!("tokload-rate-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        let args =
            RunArgs { request_rate_series: Some(path.to_str().unwrap().to_owned()), ..RunArgs::default() };
        let read = read_in(args).map_err(|failure| failure.to_string());
        std::fs::remove_file(&path).unwrap();
        read
    }

    #[test]
    fn a_file_is_read_and_what_was_typed_is_left() {
        let read = read_in_file("day.csv", "time,rate\n0,1\n60,2").unwrap();
        assert_eq!(read.request_rate_series.as_deref(), Some("time,rate\n0,1\n60,2\n"));
        let typed = RunArgs { request_rate_series: Some("5@60".to_owned()), ..RunArgs::default() };
        assert_eq!(read_in(typed.clone()).unwrap_or_default(), typed);
    }

    #[test]
    fn a_file_that_is_too_long_or_missing_is_refused() {
        let error = read_in_file("long.csv", &"0,1\n".repeat(250_001)).unwrap_err();
        assert!(error.contains("long.csv: it has more than 1 MB"), "{error}");
        let args = RunArgs { request_rate_series: Some("no/such.csv".to_owned()), ..RunArgs::default() };
        let error = read_in(args).unwrap_err().to_string();
        assert!(error.contains("--request-rate-series no/such.csv: "), "{error}");
    }
}
