//! Names that servebench alone has.

use super::Action::{Accept, Convert, Refuse, Same};
use super::Takes::Nothing;
use super::{Action, Converted, LATER, SAVED};

pub(super) static TABLE: &[(&[&str], Action)] = &[
    (&["--prompts"], Convert(prompts)),
    (&["--notes"], Convert(notes)),
    (&["--input-dist"], Convert(input_dist)),
    (&["--output-dist"], Convert(output_dist)),
    (
        &["--min-duration"],
        Refuse(
            "sends more than --num-requests until it is over",
            "give --duration alone for a level of that length, or --until-ci for one as long as it takes",
        ),
    ),
    (&["--csv", "--csv-requests"], Refuse(LATER, SAVED)),
    // Where a server runs on this machine they are read anyway.
    (&["--gpu"], Accept(Nothing)),
    (&["--no-gpu"], Same("--no-gpu-telemetry")),
    (&["--scrape-metrics"], Convert(scrape_metrics)),
];

/// Synthetic prompts are what there is anyway; anything else is a file.
fn prompts(value: &str) -> Converted {
    match value {
        "synthetic" => Ok(Vec::new()),
        "dolly" => Err((
            "'dolly' would be downloaded".to_owned(),
            "give databricks-dolly-15k.jsonl of databricks/databricks-dolly-15k by --dataset-path",
        )),
        _ => Ok(vec![("--dataset-path", value.to_owned())]),
    }
}

/// What each endpoint says of itself is asked for anyway.
fn scrape_metrics(value: &str) -> Converted {
    Ok(match value {
        "auto" | "on" | "true" => Vec::new(),
        "none" | "off" | "false" => vec![("--no-server-metrics", String::new())],
        url => vec![("--server-metrics", url.to_owned())],
    })
}

fn notes(value: &str) -> Converted {
    Ok(vec![("--metadata", format!("notes={value}"))])
}

fn input_dist(value: &str) -> Converted {
    dist(
        value,
        [
            "give --random-input-len normal:mean=N,stddev=N/4,min=4 with the numbers",
            "give --random-input-len lognormal:mean=N,sigma=0.5,min=4 with the number",
            "give --random-input-len uniform:min=N/2,max=3N/2 with the numbers",
        ],
    )
}

fn output_dist(value: &str) -> Converted {
    dist(
        value,
        [
            "give --random-output-len normal:mean=N,stddev=N/4,min=4 with the numbers",
            "give --random-output-len lognormal:mean=N,sigma=0.5,min=4 with the number",
            "give --random-output-len uniform:min=N/2,max=3N/2 with the numbers",
        ],
    )
}

/// Shapes around a length that is given apart; here a distribution is given as a whole.
fn dist(value: &str, [normal, lognormal, uniform]: [&'static str; 3]) -> Converted {
    let remedy = match value {
        "fixed" => return Ok(Vec::new()),
        "normal" | "gaussian" => normal,
        "lognormal" => lognormal,
        "uniform" => uniform,
        _ => {
            return Err((
                format!("'{value}' is no distribution"),
                "give fixed, normal, lognormal or uniform",
            ));
        }
    };
    Err((format!("'{value}' alone says no lengths"), remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_synthetic_or_a_file() {
        assert_eq!(prompts("synthetic"), Ok(Vec::new()));
        assert_eq!(prompts("a.txt"), Ok(vec![("--dataset-path", "a.txt".to_owned())]));
        assert!(prompts("dolly").unwrap_err().1.contains("databricks-dolly-15k.jsonl"));
        assert_eq!(notes("8 x H100"), Ok(vec![("--metadata", "notes=8 x H100".to_owned())]));
    }

    #[test]
    fn a_shape_is_answered_with_the_distribution_to_give() {
        assert_eq!(input_dist("fixed"), Ok(Vec::new()));
        assert!(input_dist("lognormal").unwrap_err().1.contains("--random-input-len lognormal:"));
        assert!(output_dist("uniform").unwrap_err().1.contains("--random-output-len uniform:"));
        assert!(output_dist("zipf").unwrap_err().1.contains("lognormal"));
    }
}
