//! The files that the mock server reads and leaves behind.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use crate::cli::failure::Failure;
use crate::mock::{Account, Fault, Write};
use crate::plan::Error;
use crate::time::Stamp;

/// A file that is opened at the start, so that a path that cannot be written is known then and not at the end.
#[derive(Debug)]
pub(super) struct Output {
    path: String,
    file: File,
}

impl Output {
    /// Opens a file anew, if one is wished.
    pub(super) fn open(path: Option<&str>) -> Result<Option<Output>, Failure> {
        let Some(path) = path else { return Ok(None) };
        match File::create(path) {
            Ok(file) => Ok(Some(Output { path: path.to_owned(), file })),
            Err(error) => Err(Failure::unwritable(Path::new(path), &error)),
        }
    }

    pub(super) fn write(mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| Failure::unwritable(Path::new(&self.path), &error))
    }
}

/// All of a file that `option` names.
pub(super) fn read(option: &str, path: &str) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        Failure::bad(Error::new(
            option,
            format!("cannot read {path}: {error}"),
            "give the path of a PEM file",
        ))
    })
}

/// One line per request under a line of names. Times in us since the server's start; what there was not is empty.
pub(super) fn csv(accounts: &[Account]) -> String {
    let mut out = String::from(
        "number,arrived_us,first_due_us,first_sent_us,last_due_us,last_sent_us,ended_us,prompt_tokens,\
         cached_tokens,tokens,events,choices,stream,status,fault,ending\n",
    );
    let us = |stamp: Stamp| format!("{:.3}", stamp.as_nanos() as f64 / 1e3);
    for account in accounts {
        let due = |write: Option<Write>| write.map(|write| us(write.due)).unwrap_or_default();
        let sent = |write: Option<Write>| write.map(|write| us(write.sent)).unwrap_or_default();
        let cached = account.cached_tokens.map(|tokens| tokens.to_string()).unwrap_or_default();
        let fault = account.fault.as_ref().map(Fault::to_string).unwrap_or_default();
        let line = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{cached},{},{},{},{},{},{fault},{}",
            account.number,
            us(account.arrived),
            due(account.first),
            sent(account.first),
            due(account.last),
            sent(account.last),
            us(account.ended),
            account.prompt_tokens,
            account.tokens,
            account.events,
            account.choices,
            account.stream,
            account.status,
            account.ending.name(),
        );
        line.expect("writing to a string does not fail");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::{Answer, Ending};

    #[test]
    fn a_request_is_a_line() {
        let at = Stamp::from_nanos;
        let plain = Account {
            number: 3,
            fault: None,
            stream: true,
            choices: 1,
            arrived: at(1_000_500),
            first: Some(Write { due: at(2_000_000), sent: at(2_001_000) }),
            last: Some(Write { due: at(3_000_000), sent: at(3_002_000) }),
            ended: at(3_003_000),
            prompt_tokens: 7,
            cached_tokens: None,
            tokens: 5,
            events: 4,
            status: 200,
            ending: Ending::Complete,
            mark: 0,
        };
        let status = Fault::Answer(Answer::Status { status: 429, retry_after_s: None });
        let refused = Account {
            fault: Some(status),
            first: None,
            last: None,
            cached_tokens: Some(0),
            status: 429,
            ending: Ending::Refused,
            ..plain.clone()
        };
        let text = csv(&[plain, refused]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let columns = lines[0].split(',').count();
        assert!(lines.iter().all(|line| line.split(',').count() == columns));
        assert_eq!(
            lines[1],
            "3,1000.500,2000.000,2001.000,3000.000,3002.000,3003.000,7,,5,4,1,true,200,,complete"
        );
        assert_eq!(lines[2], "3,1000.500,,,,,3003.000,7,0,5,4,1,true,429,http-429,refused");
    }
}
