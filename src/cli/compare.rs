//! `compare`: runs beside each other.

use std::path::Path;

use super::args::CompareArgs;
use super::exit::Exit;
use super::failure::Failure;
use super::run::terminal_style;
use super::value::{self, Format};
use super::with_stdout;
use crate::compare::{self, Sample};
use crate::plan::{Error, Slo};
use crate::report::side_by_side;
use crate::run_file::Loaded;
use crate::stats::Confidence;

pub(super) fn main(args: &CompareArgs) -> Result<Exit, Failure> {
    let format = args.format.as_deref().map_or(Ok(Format::default()), |text| value::format("--format", text));
    let format = format.map_err(Failure::bad)?;
    let confidence = confidence(args.confidence_level.as_deref()).map_err(Failure::bad)?;
    let slo = slo(&args.goodput).map_err(Failure::bad)?;
    if args.runs.len() < 2 {
        let remedy = "name the saved runs, as in tokload compare a.json b.json; tokload report shows one";
        return Err(Failure::bad(Error::new("tokload compare", "takes two runs or more", remedy)));
    }
    let runs = compare::compare(&samples(&args.runs)?, slo, confidence);
    match format {
        Format::Json => with_stdout(|mut out| side_by_side::write_json(&runs, &mut out))?,
        Format::Table => with_stdout(|mut out| side_by_side::write(&runs, terminal_style(), &mut out))?,
    }
    Ok(Exit::Done)
}

/// The saved runs, each under the path that names it, with the requests behind them.
pub(super) fn samples(paths: &[String]) -> Result<Vec<Sample>, Failure> {
    let one = |path: &String| {
        let loaded = Loaded::open(Path::new(path)).map_err(Failure::bad)?;
        Sample::of(path, &loaded).map_err(Failure::bad)
    };
    paths.iter().map(one).collect()
}

/// The limits of `--goodput`; `None` where it is not given.
pub(super) fn slo(texts: &[String]) -> Result<Option<Slo>, Error> {
    if texts.is_empty() { Ok(None) } else { value::goodput("--goodput", texts).map(Some) }
}

/// The confidence of `--confidence-level`, in percent or as a share: 95 and 0.95 are the same.
pub(super) fn confidence(text: Option<&str>) -> Result<Confidence, Error> {
    let Some(text) = text else { return Ok(Confidence::C95) };
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>().unwrap_or(f64::NAN);
    let share = if number >= 1.0 { number / 100.0 } else { number };
    Confidence::new(share).filter(|confidence| confidence.level() >= LEVEL_MIN).ok_or_else(|| {
        Error::new(
            "--confidence-level",
            format!("'{text}' is no confidence"),
            "give percent from 50 to below 100, as in 95",
        )
    })
}

/// An interval that misses more often than it holds is none.
const LEVEL_MIN: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confidence_is_percent_or_a_share() {
        let of = |text| confidence(Some(text)).map(Confidence::level);
        assert_eq!(["95", "0.95", "95%"].map(of), [Ok(0.95), Ok(0.95), Ok(0.95)]);
        assert_eq!(confidence(None).unwrap(), Confidence::C95);
        for text in ["", "x", "100", "0", "1", "-5", "nan", "49", "0.3"] {
            let error = confidence(Some(text)).unwrap_err().to_string();
            assert!(
                error.starts_with("--confidence-level: ") && error.contains("as in 95"),
                "{text}: {error}"
            );
        }
    }
}
