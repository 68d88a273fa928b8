//! `--fault`: kinds, their values, probabilities and time windows.

use std::time::Duration;

use super::span;
use crate::cli::value;
use crate::mock::{Answer, Fault, FaultError, Faults, HTTP, Outage, RETRY_AFTER, RETRY_AFTER_S, Reach, When};
use crate::plan::{Error, nearest};

const OPTION: &str = "--fault";

/// Reads all of them.
pub(super) fn read(texts: &[String]) -> Result<Faults, Error> {
    let mut faults = Faults::default();
    for text in texts {
        match text.split_once('@') {
            Some((kind, window)) => faults.outages.push(outage(text, kind, window)?),
            None => faults.requests.push(one(text)?),
        }
    }
    match faults.check() {
        Ok(()) => Ok(faults),
        Err(FaultError::Probability | FaultError::Sum) => {
            let wrong = "the probabilities of all kinds are more than 1 together";
            Err(Error::new(
                OPTION,
                wrong,
                "give each a smaller one, as in stall:0.05; one without counts as 1",
            ))
        }
    }
}

/// `stall`, `stall=5`, `stall:0.05`, `stall=5:0.05`.
fn one(text: &str) -> Result<(When, Fault), Error> {
    let (what, chance) = match text.split_once(':') {
        Some((what, chance)) => (what, probability(text, chance)?),
        None => (text, 1.0),
    };
    let (word, value) = match what.split_once('=') {
        Some((word, value)) => (word, Some(value)),
        None => (what, None),
    };
    let fault = match word.strip_prefix(HTTP) {
        Some(rest) => http(text, rest, value)?,
        None => named(text, word, value)?,
    };
    Ok((When::Chance(chance), fault))
}

fn probability(text: &str, chance: &str) -> Result<f64, Error> {
    match value::number(OPTION, chance) {
        Ok(chance) if (0.0..=1.0).contains(&chance) => Ok(chance),
        _ => {
            let wrong = format!("'{chance}' in '{text}' is no probability");
            Err(Error::new(OPTION, wrong, "give a share from 0 to 1, as in stall:0.05"))
        }
    }
}

/// A status, with `Retry-After` on wish.
fn http(text: &str, rest: &str, value: Option<&str>) -> Result<Fault, Error> {
    let (code, retries) = rest.strip_suffix(RETRY_AFTER).map_or((rest, false), |code| (code, true));
    let status = match value::integer(OPTION, code) {
        Ok(status @ 400..=599) => status,
        _ => {
            let wrong = format!("'{code}' in '{text}' is no status of an error");
            return Err(Error::new(
                OPTION,
                wrong,
                "give 400 to 599, as in http-429 or http-503-retry-after=2",
            ));
        }
    };
    let retry_after_s = match (retries, value) {
        (false, None) => None,
        (false, Some(_)) => return Err(no_value(text, rest)),
        (true, None) => Some(RETRY_AFTER_S),
        (true, Some(seconds)) => Some(value::integer(OPTION, seconds).map_err(|_| bad_value(text, seconds))?),
    };
    Ok(Fault::Answer(Answer::Status { status, retry_after_s }))
}

fn named(text: &str, word: &str, value: Option<&str>) -> Result<Fault, Error> {
    let Some((_, fault)) = Fault::NAMED.iter().find(|(name, _)| *name == word) else {
        return Err(unknown(word));
    };
    let Some(value) = value else { return Ok(*fault) };
    if fault.with_time(Duration::ZERO).is_some() {
        let time = span(OPTION, value).map_err(|_| bad_value(text, value))?;
        return fault.with_time(time).ok_or_else(|| bad_value(text, value));
    }
    let Some(numbers) = fault.numbers() else { return Err(no_value(text, word)) };
    let out_of_range = || {
        let wrong = format!("'{value}' in '{text}' is not a number that it takes");
        Error::new(OPTION, wrong, format!("give {numbers}"))
    };
    let number = value::integer(OPTION, value).map_err(|_| out_of_range())?;
    fault.with_number(number).ok_or_else(out_of_range)
}

/// `refuse@5s+3s`.
fn outage(text: &str, kind: &str, window: &str) -> Result<Outage, Error> {
    let reach = match kind {
        "refuse" => Reach::Listener,
        "server-down" => Reach::Server,
        _ => {
            let wrong = format!("'{kind}' does not happen in a time window");
            return Err(Error::new(OPTION, wrong, "give refuse@5s+3s or server-down@5s+3s"));
        }
    };
    let parts = window.split_once('+').map(|(start, length)| (span(OPTION, start), span(OPTION, length)));
    match parts {
        Some((Ok(start), Ok(length))) if !length.is_zero() => Ok(Outage { reach, start, length }),
        _ => {
            let wrong = format!("'{window}' in '{text}' is no time window");
            Err(Error::new(OPTION, wrong, "give start and length, as in server-down@5s+3s"))
        }
    }
}

fn unknown(word: &str) -> Error {
    if WINDOWS.contains(&word) {
        let wrong = format!("'{word}' needs to know when");
        return Error::new(OPTION, wrong, format!("give start and length, as in {word}@5s+3s"));
    }
    let words = Fault::NAMED.iter().map(|(name, _)| *name).chain(WINDOWS).chain(["http-429", "http-503"]);
    let remedy = match nearest(word, words) {
        Some(near) => format!("did you mean {near}?"),
        None => "`tokload mock-server --help` lists the kinds".to_owned(),
    };
    Error::new(OPTION, format!("'{word}' is no kind of fault"), remedy)
}

fn no_value(text: &str, word: &str) -> Error {
    Error::new(OPTION, format!("'{word}' in '{text}' takes no value"), "leave out what follows =")
}

fn bad_value(text: &str, value: &str) -> Error {
    let wrong = format!("'{value}' in '{text}' is not a value of this kind");
    Error::new(OPTION, wrong, "give a number, as in stall=5, or a time, as in slow-headers=500ms")
}

/// The kinds that take a time window.
const WINDOWS: [&str; 2] = ["refuse", "server-down"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Name;
    use crate::mock::{Break, Cut, Delivery};

    fn of(texts: &[&str]) -> Result<Faults, Error> {
        read(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
    }

    fn wrong(text: &str) -> String {
        of(&[text]).unwrap_err().to_string()
    }

    #[test]
    fn kinds_have_values_and_probabilities() {
        let faults = of(&["stall=5:0.25", "http-503-retry-after=2:0.5", "slow-headers=50ms:.125"]).unwrap();
        let stall = Fault::Cut(Cut { after_events: 5, how: Break::Stall });
        let busy = Fault::Answer(Answer::Status { status: 503, retry_after_s: Some(2) });
        let slow = Fault::Delivery(Delivery::SlowHead(Duration::from_millis(50)));
        assert_eq!(
            faults.requests,
            [(When::Chance(0.25), stall), (When::Chance(0.5), busy), (When::Chance(0.125), slow)]
        );
        let plain = of(&["http-429"]).unwrap().requests[0];
        let refusal = Fault::Answer(Answer::Status { status: 429, retry_after_s: None });
        assert_eq!(plain, (When::Chance(1.0), refusal));
    }

    #[test]
    fn windows_are_start_and_length() {
        let faults = of(&["refuse@0+1", "server-down@1.5s+250ms"]).unwrap();
        let ms = Duration::from_millis;
        assert_eq!(
            faults.outages,
            [
                Outage { reach: Reach::Listener, start: ms(0), length: ms(1000) },
                Outage { reach: Reach::Server, start: ms(1500), length: ms(250) }
            ]
        );
    }

    #[test]
    fn what_a_fault_is_called_is_what_it_is_read_from() {
        for (_, fault) in Fault::NAMED {
            let other =
                fault.with_number(70_000).or(fault.with_time(Duration::from_millis(7))).unwrap_or(fault);
            for fault in [fault, other] {
                assert_eq!(of(&[&fault.to_string()]).unwrap().requests, [(When::Chance(1.0), fault)]);
            }
        }
    }

    #[test]
    fn help_lists_every_kind() {
        let info = Name::MockServer.info();
        let help = info.flags.iter().find(|flag| flag.long == "--fault").unwrap().description;
        let words: Vec<&str> = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).collect();
        for (word, fault) in Fault::NAMED {
            assert!(words.contains(&word), "{word}");
            let takes = fault.numbers().is_some() || fault.with_time(Duration::ZERO).is_some();
            assert_eq!(help.contains(&format!("{word}[=")), takes, "{word}");
        }
        for word in WINDOWS.into_iter().chain(["http-CODE", "http-CODE-retry-after"]) {
            assert!(words.contains(&word), "{word}");
        }
    }

    #[test]
    fn mistakes_are_explained() {
        assert!(wrong("stal").contains("did you mean stall?"));
        assert!(wrong("earthquake").contains("--help"));
        assert!(wrong("server-down").contains("as in server-down@5s+3s"));
        assert!(wrong("stall@5s+3s").contains("does not happen in a time window"));
        for text in ["refuse@5s", "refuse@5s+0", "refuse@x+1", "refuse@+", "server-down@-1+2"] {
            assert!(wrong(text).contains("is no time window"), "{text}");
        }
        for text in ["stall:1.5", "stall:-0.1", "stall:x", "stall:nan", "stall:"] {
            assert!(wrong(text).contains("is no probability"), "{text}");
        }
        for text in ["http-200", "http-600", "http-", "http-4x9"] {
            assert!(wrong(text).contains("no status of an error"), "{text}");
        }
        for text in ["html=1", "http-429=2", "crlf=x"] {
            assert!(wrong(text).contains("takes no value"), "{text}");
        }
        for text in ["slow-headers=x", "http-429-retry-after=x"] {
            assert!(wrong(text).contains("is not a value of this kind"), "{text}");
        }
        for (text, value, numbers) in [
            ("stall=x", "x", "the number of an event, from 0"),
            ("stall=", "", "the number of an event, from 0"),
            ("bundle=0", "0", "events, from 1 to 4294967295"),
            ("giant=10", "10", "bytes, from 65536 to 67108864"),
            ("giant=99999999999", "99999999999", "bytes, from 65536 to 67108864"),
        ] {
            let expected =
                format!("--fault: '{value}' in '{text}' is not a number that it takes; give {numbers}");
            assert_eq!(wrong(text), expected);
        }
        let sum = of(&["stall:0.6", "html:0.5"]).unwrap_err().to_string();
        assert!(sum.contains("more than 1 together"));
        assert!(of(&["stall", "html"]).is_err(), "each would be all");
    }
}
