//! Rates over time, bursts that come again, users who come in one after another: what of them cannot be run.

use super::{LEVEL_S_MAX, RATE_MAX};
use crate::plan::{Arrivals, Error, Level, Load, Piece, Rate, Series, Shape, Stop, Varying};

/// The numbers of the processes that have more than a rate.
pub(super) fn check_arrivals(arrivals: &Arrivals) -> Result<(), Error> {
    match arrivals {
        Arrivals::Bursts { size, every_s } => check_bursts(*size, *every_s),
        Arrivals::Joining { ramp_s } if !(ramp_s.is_finite() && *ramp_s > 0.0 && *ramp_s <= LEVEL_S_MAX) => {
            let remedy = "give seconds above 0, or leave it out for users who all come at once";
            Err(Error::new("--concurrency-ramp-duration", format!("{ramp_s:?} s is no ramp"), remedy))
        }
        Arrivals::Varying(Varying { rate: Rate::Series(series), .. }) => check_series(series),
        _ => Ok(()),
    }
}

fn check_bursts(size: u32, every_s: f64) -> Result<(), Error> {
    let wrong = |wrong: String, remedy: &str| Err(Error::new("--bursts", wrong, remedy));
    if size == 0 {
        return wrong("0 requests are no burst".to_owned(), "give at least 1, as in 32@10");
    }
    if !(every_s.is_finite() && every_s > 0.0 && every_s <= LEVEL_S_MAX) {
        return wrong(
            format!("{every_s:?} s is no time between bursts"),
            "give seconds above 0, as in 32@10",
        );
    }
    // The rate itself is checked as that of any other load; below it a nanosecond would hold two bursts.
    match f64::from(size) / every_s > RATE_MAX {
        true => wrong(
            format!("{size} requests in {every_s} s are too many"),
            &format!("give at most {RATE_MAX} requests per second"),
        ),
        false => Ok(()),
    }
}

fn check_series(series: &Series) -> Result<(), Error> {
    let wrong = |wrong: String, remedy: &str| Err(Error::new(SERIES, wrong, remedy));
    if series.pieces.is_empty() {
        return wrong("there is nothing in it".to_owned(), "give at least one rate, as in 5..50@60,50@300");
    }
    if series.pieces.len() > Series::PIECES_MAX {
        let remedy = format!("give at most {}", Series::PIECES_MAX);
        return wrong(format!("{} pieces are too many", series.pieces.len()), &remedy);
    }
    series.pieces.iter().try_for_each(check_piece)?;
    if series.length_s() > LEVEL_S_MAX {
        return wrong("all its times together are more than a year".to_owned(), "give shorter ones");
    }
    if series.pieces.iter().all(|piece| piece.rate == 0.0 && piece.end() == 0.0) {
        return wrong("its rate is 0 all the time".to_owned(), "give a rate above 0");
    }
    Ok(())
}

fn check_piece(piece: &Piece) -> Result<(), Error> {
    let wrong = |wrong: String, remedy: &str| Err(Error::new(SERIES, wrong, remedy));
    for rate in [piece.rate, piece.end()] {
        if !(rate.is_finite() && (0.0..=RATE_MAX).contains(&rate)) {
            let remedy = format!("give requests per second, 0 for none, at most {RATE_MAX}");
            return wrong(format!("{rate:?} is not a rate"), &remedy);
        }
    }
    if !(piece.length_s.is_finite() && piece.length_s > 0.0) {
        let remedy = "give seconds above 0, as in 5@60; only the last rate may be held for good";
        return wrong(format!("{:?} s is no time for a rate", piece.length_s), remedy);
    }
    let zero = piece.rate == 0.0 || piece.end() == 0.0;
    if zero && !piece.is_steady() && piece.shape != Shape::Linear {
        let name = piece.shape.name();
        let remedy = "begin and end above 0, as in 0.1..50@60:exp, or make it linear";
        return wrong(format!("{name} takes for ever from or to 0"), remedy);
    }
    Ok(())
}

/// What the length of a level must be for its load.
pub(super) fn check_end(load: &Load, stop: &Stop) -> Result<(), Error> {
    if let (Some(ramp_s), Some(duration_s)) = (load.ramp_s(), stop.duration_s)
        && ramp_s >= duration_s
    {
        let wrong = format!("the last user would come in after {ramp_s} s of a level of {duration_s} s");
        let remedy = "give a shorter ramp or a longer --duration";
        return Err(Error::new("--concurrency-ramp-duration", wrong, remedy));
    }
    if load.arrivals.is_exact_count() {
        let wrong = |wrong: String, remedy: &str| Err(Error::new("--exact-count", wrong, remedy));
        let Some(units) = stop.units else {
            return wrong("needs a number of requests".to_owned(), "give --num-prompts");
        };
        if units > EXACT_MAX {
            let remedy = format!("give at most {EXACT_MAX}, or leave it out: the realised rate is reported");
            return wrong(format!("{units} requests would all be drawn twice"), &remedy);
        }
    }
    let Some(course) = load.arrivals.series().and_then(|_| load.course()) else { return Ok(()) };
    match (stop.duration_s, stop.units) {
        (Some(duration_s), _) if course.count_by(duration_s) < 1.0 => {
            let wrong = format!("less than one request is expected in {duration_s} s");
            Err(Error::new(SERIES, wrong, "give larger rates, or a longer level"))
        }
        (None, Some(units)) => match course.time_of(units as f64 - 1.0) {
            Some(s) if s <= LEVEL_S_MAX => Ok(()),
            Some(_) => {
                let wrong = format!("{units} requests take more than a year");
                Err(Error::new(SERIES, wrong, "give larger rates, or fewer requests"))
            }
            None => {
                let wrong = format!("its rate ends at 0, and {units} requests never come");
                Err(Error::new(SERIES, wrong, "give --duration, or a last rate above 0"))
            }
        },
        _ => Ok(()),
    }
}

/// Why the level cannot be lengthened until a figure is known, if it cannot, and what to do instead.
pub(super) fn why_no_longer(level: &Level) -> Option<(&'static str, &'static str)> {
    let arrivals = &level.load.arrivals;
    if arrivals.is_exact_count() {
        let remedy = "leave out --exact-count: it moves requests by how many there will be";
        return Some(("the number of requests is not known beforehand", remedy));
    }
    let once = arrivals.series().is_some_and(|series| !series.repeat && series.lead_in_s().is_none());
    once.then_some((
        "a series that is over has nothing to go on with",
        "leave it out, or give --request-rate-series-repeat",
    ))
}

const SERIES: &str = "--request-rate-series";
/// Most requests of a level whose number is exact: each shard draws them twice, some ten million a second.
const EXACT_MAX: u64 = 10_000_000;
