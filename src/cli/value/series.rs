//! Rates over time as they are typed, or as a file has them: pieces as in `0..50@60,50@5m`, points as aiperf's JSON has
//! them, or a table of times and rates.

use serde::Deserialize;

use super::{number, seconds};
use crate::plan::{Error, Piece, Series, Shape};

/// A rate over time that is not repeated.
///
/// - `5@60,50@60`: 5 requests per second for 60 s, then 50 for as long
/// - `5..50@1m`: from 5 to 50 in a minute, linearly
/// - `5..50@1m:exp`: the same by the same factor in equal times
/// - `{"points": [{"time_s": 0, "qps": 5}, {"time_s": 60, "qps": 50}]}` or the bare array: aiperf's points, between which
///   the rate is linear
/// - lines of `time,rate`, which are points as well
///
/// # Errors
/// What is none of these, with the place. Whether the numbers make sense is the plan's to say.
pub fn series(option: &str, text: &str) -> Result<Series, Error> {
    let text = text.trim();
    let pieces = if text.starts_with(['{', '[']) {
        of_points(option, &json_points(option, text)?)?
    } else if text.contains('\n') {
        of_points(option, &csv_points(option, text)?)?
    } else {
        text.split(',').map(|item| piece(option, item.trim())).collect::<Result<_, _>>()?
    };
    Ok(Series { pieces, repeat: false })
}

/// Whether what was typed for a series is the name of a file that has it.
#[must_use]
pub fn is_series_file(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    text.contains(['/', '\\']) || lower.ends_with(".csv") || lower.ends_with(".json")
}

/// Bursts that come again and again, `SIZE@SECONDS`.
///
/// # Errors
/// What is not two numbers.
pub fn bursts(option: &str, text: &str) -> Result<(u32, f64), Error> {
    let (size, every) = text.split_once('@').ok_or_else(|| {
        let remedy = "give requests and seconds, as in 32@10 for 32 requests every 10 s";
        Error::new(option, format!("'{text}' does not say how often"), remedy)
    })?;
    Ok((super::integer(option, size)?, seconds(option, every)?))
}

/// How the rate of a ramp grows, in vLLM's words.
///
/// # Errors
/// Others.
pub fn is_exponential(option: &str, text: &str) -> Result<bool, Error> {
    match text {
        "linear" => Ok(false),
        "exponential" => Ok(true),
        _ => {
            let wrong = format!("'{text}' is no way to go up");
            Err(Error::new(option, wrong, "give linear or exponential"))
        }
    }
}

/// `RATE@TIME` or `RATE..RATE@TIME`, with `:SHAPE` after it.
fn piece(option: &str, item: &str) -> Result<Piece, Error> {
    let wrong = |wrong: String| Error::new(option, wrong, REMEDY);
    let (rates, rest) = item.split_once('@').ok_or_else(|| match item {
        "" => wrong("there is nothing between two commas".to_owned()),
        _ => wrong(format!("'{item}' does not say for how long")),
    })?;
    let (time, shape) = match rest.split_once(':') {
        None => (rest, Shape::Linear),
        Some((time, "exp" | "exponential")) => (time, Shape::Exponential),
        Some((time, "hyp" | "hyperbolic")) => (time, Shape::Hyperbolic),
        Some((time, "lin" | "linear")) => (time, Shape::Linear),
        Some((_, shape)) => {
            let remedy = "give linear, exp or hyp, as in 5..50@60:exp";
            return Err(Error::new(option, format!("'{shape}' is no shape"), remedy));
        }
    };
    let rate = |text: &str| number(option, text).map_err(|_| wrong(format!("'{text}' is not a rate")));
    let length_s = seconds(option, time)?;
    match rates.split_once("..") {
        None => Ok(Piece::steady(rate(rates)?, length_s)),
        Some((from, to)) => Ok(Piece::ramp(rate(from)?, rate(to)?, length_s, shape)),
    }
}

/// A time and the rate then.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Point {
    #[serde(alias = "timeS", alias = "time")]
    time_s: f64,
    #[serde(alias = "rate")]
    qps: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Points {
    points: Vec<Point>,
}

fn json_points(option: &str, text: &str) -> Result<Vec<Point>, Error> {
    let points = match text.starts_with('[') {
        true => serde_json::from_str(text),
        false => serde_json::from_str::<Points>(text).map(|points| points.points),
    };
    points.map_err(|error| {
        let remedy = r#"write as in {"points": [{"time_s": 0, "qps": 5}, {"time_s": 60, "qps": 50}]}"#;
        Error::new(option, format!("the JSON of the series: {error}"), remedy)
    })
}

/// Two columns by their names, or, without a header, the first two.
fn csv_points(option: &str, text: &str) -> Result<Vec<Point>, Error> {
    let mut columns = None;
    let mut points = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split(',').map(|field| field.trim().trim_matches('"')).collect();
        let Some((time, rate)) = columns else {
            columns = Some(header(&fields).unwrap_or((0, 1)));
            if header(&fields).is_some() {
                continue;
            }
            // A first line that is neither header nor numbers is told of below.
            points.push(row(option, place, &fields, (0, 1))?);
            continue;
        };
        points.push(row(option, place, &fields, (time, rate))?);
    }
    Ok(points)
}

fn header(fields: &[&str]) -> Option<(usize, usize)> {
    let place = |names: &[&str]| {
        fields.iter().position(|field| names.iter().any(|name| field.eq_ignore_ascii_case(name)))
    };
    let time = place(&["time", "time_s", "timestamp", "seconds", "offset_s", "t"])?;
    Some((time, place(&["rate", "request_rate", "requests_per_second", "qps", "rps"])?))
}

fn row(option: &str, place: usize, fields: &[&str], (time, rate): (usize, usize)) -> Result<Point, Error> {
    let at = |column: usize| fields.get(column).copied().unwrap_or_default();
    let wrong = |what: &str| {
        let remedy = "give a header 'time,rate' and lines of seconds and requests per second, as in 60,5";
        Error::new(option, format!("line {}: '{what}' is not a number", place + 1), remedy)
    };
    let time_s = seconds(option, at(time)).map_err(|_| wrong(at(time)))?;
    Ok(Point { time_s, qps: number(option, at(rate)).map_err(|_| wrong(at(rate)))? })
}

/// Linear from point to point; the first rate also before the first time. Two points of one time are a step.
fn of_points(option: &str, points: &[Point]) -> Result<Vec<Piece>, Error> {
    let wrong = |wrong: String, remedy: &str| Err(Error::new(option, wrong, remedy));
    let (Some(first), [.., before, last]) = (points.first(), points) else {
        return wrong("a series needs two points".to_owned(), "give a time and a rate for each");
    };
    if before.time_s == last.time_s {
        let remedy = "give the last rate a time of its own, or leave it out";
        return wrong("the last two points have the same time".to_owned(), remedy);
    }
    let mut pieces = Vec::with_capacity(points.len());
    if first.time_s > 0.0 {
        pieces.push(Piece::steady(first.qps, first.time_s));
    }
    for (place, pair) in points.windows(2).enumerate() {
        let (from, to) = (pair[0], pair[1]);
        let length_s = to.time_s - from.time_s;
        if length_s < 0.0 || from.time_s < 0.0 {
            let wrong_time = if length_s < 0.0 { to.time_s } else { from.time_s };
            let wrong_place = if length_s < 0.0 { place + 2 } else { place + 1 };
            let what = format!("point {wrong_place}, at {wrong_time} s, comes before the one before it");
            return wrong(what, "sort the points by time, from 0 on");
        }
        if length_s > 0.0 {
            let steady = from.qps == to.qps;
            pieces.push(match steady {
                true => Piece::steady(from.qps, length_s),
                false => Piece::ramp(from.qps, to.qps, length_s, Shape::Linear),
            });
        }
    }
    Ok(pieces)
}

const REMEDY: &str = "give rates and times, as in 5@60,5..50@5m, or a file of them, .json or .csv";

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<Piece> {
        series("--x", text).unwrap_or_else(|error| panic!("{text}: {error}")).pieces
    }

    fn refused(text: &str) -> String {
        series("--x", text).expect_err(text).to_string()
    }

    #[test]
    fn pieces_are_rates_and_times() {
        let expected =
            [Piece::steady(5.0, 60.0), Piece::ramp(0.5, 50.0, 300.0, Shape::Linear), Piece::steady(0.0, 0.5)];
        assert_eq!(pieces("5@60, 0.5..50@5m ,0@500ms"), expected);
        for (shape, names) in [
            (Shape::Exponential, ["exp", "exponential"]),
            (Shape::Hyperbolic, ["hyp", "hyperbolic"]),
            (Shape::Linear, ["lin", "linear"]),
        ] {
            for name in names {
                assert_eq!(pieces(&format!("1..2@3:{name}")), [Piece::ramp(1.0, 2.0, 3.0, shape)]);
            }
        }
        for (text, word) in [
            ("", "nothing between"),
            ("5", "for how long"),
            ("5@60,", "nothing between"),
            ("5@60,50", "'50' does not say"),
            ("x@60", "'x' is not a rate"),
            ("1..x@60", "'x' is not a rate"),
            ("1..inf@60", "'inf' is not a rate"),
            ("5@long", "'long' is not a time"),
            ("5@-1", "'-1' is not a time"),
            ("1..2@3:cubic", "'cubic' is no shape"),
        ] {
            assert!(refused(text).contains(word), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn points_are_joined_by_lines() {
        let expected = [
            Piece::ramp(1.0, 7.0, 60.0, Shape::Linear),
            Piece::steady(7.0, 20.0),
            // A step, then down.
            Piece::ramp(40.0, 0.0, 40.0, Shape::Linear),
        ];
        let json = r#"[{"time_s":0,"qps":1},{"time_s":60,"qps":7},{"time_s":80,"qps":7},{"time_s":80,"qps":40},
                       {"time_s":120,"qps":0}]"#;
        assert_eq!(pieces(json), expected);
        assert_eq!(pieces(&format!("{{\"points\": {json}}}")), expected);
        let csv = "# a day\nday,Time,rate\nmon,0,1\n\nmon,60s,7\nmon,80,7\nmon,80,40\nmon,2m,0\n";
        assert_eq!(pieces(csv), expected);
        assert_eq!(pieces("0,1\n60,7\n80,7\n80,40\n120,0\n"), expected);
        // What is not said from the start on is as at the first point.
        let late = [Piece::steady(3.0, 10.0), Piece::ramp(3.0, 4.0, 5.0, Shape::Linear)];
        assert_eq!(pieces("time,rate\n10,3\n15,4"), late);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_place() {
        for (text, word) in [
            ("[]", "two points"),
            ("[{\"time_s\":0,\"qps\":1}]", "two points"),
            ("{\"points\": 3}", "JSON of the series"),
            ("{\"points\": [], \"more\": 1}", "`more`"),
            ("[{\"time_s\":0}]", "`qps`"),
            ("[{\"time_s\":0,\"qps\":1},{\"time_s\":-1,\"qps\":1}]", "point 2, at -1 s"),
            ("[{\"time_s\":-5,\"qps\":1},{\"time_s\":1,\"qps\":1}]", "point 1, at -5 s"),
            ("0,1\n9,1\n9,2", "same time"),
            ("time,rate\n0,1\n60,fast", "line 3: 'fast'"),
            ("time,rate\n0,1\n60", "line 3: ''"),
            ("time,rate\n-1,1\n60,1", "line 2: '-1'"),
            ("when,much\n0,1\n60,1", "line 1: 'when'"),
            ("time,rate\n0,1\n9,2\n5,3\n10,3", "point 3, at 5 s"),
        ] {
            assert!(refused(text).contains(word), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn files_are_known_by_their_names() {
        for file in ["day.csv", "DAY.CSV", "rate.json", "./day", "a/b"] {
            assert!(is_series_file(file), "{file}");
        }
        for text in ["5@60", "0.5..50@5m:exp", "[{\"time_s\":0,\"qps\":1}]"] {
            assert!(!is_series_file(text), "{text}");
        }
    }
}
