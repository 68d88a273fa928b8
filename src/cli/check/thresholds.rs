//! The limits of a gate from its options.

use crate::cli::args::CheckArgs;
use crate::compare::{Figure, Rate, Scale};
use crate::gate::{Against, Limit, Thresholds};
use crate::metrics::Metric;
use crate::metrics::metric::Better;
use crate::plan::{Error, nearest};
use crate::stats::Quantile;

/// The limits that `args` ask for, upon those that are there by default.
///
/// # Errors
///
/// Unknown figures, shares that are none, and limits that nothing could pass or fail; the same figure limited twice.
pub(crate) fn of(args: &CheckArgs) -> Result<Thresholds, Error> {
    let general = |text: &&String| text.trim() != "none";
    let mut thresholds = match args.max_degradation.iter().all(|text| general(&text)) {
        true => Thresholds::default(),
        false => Thresholds::none(),
    };
    let mut seen: Vec<(Figure, Against, &str)> = Vec::new();
    let p50 = |metric| Figure::Quantile(metric, Quantile::P50);
    let named = [
        ("--max-ttft-degradation-pct", p50(Metric::Ttft), &args.max_ttft_degradation_pct),
        ("--max-tpot-degradation-pct", p50(Metric::Tpot), &args.max_tpot_degradation_pct),
        (
            "--max-throughput-degradation-pct",
            Figure::Rate(Rate::OutputTokens),
            &args.max_throughput_degradation_pct,
        ),
        ("--max-goodput-degradation-pct", Figure::Rate(Rate::Goodput), &args.max_goodput_degradation_pct),
    ];
    for (option, figure, given) in named {
        if let Some(text) = given {
            once(&mut seen, figure, Against::Baseline, option)?;
            thresholds.set(Limit::new(figure, percent(option, text, figure)?));
        }
    }
    if let Some(text) = &args.max_error_rate_pct {
        let worse = percent("--max-error-rate-pct", text, Figure::Failed)?;
        thresholds.set(Limit { against: Against::Nothing, ..Limit::new(Figure::Failed, worse) });
    }
    for text in args.max_degradation.iter().filter(general) {
        let (figure, share) = split(text)?;
        once(&mut seen, figure, Against::Baseline, GENERAL)?;
        match share.trim() {
            "off" => thresholds.remove(figure),
            share => thresholds.set(Limit::new(figure, self::share(GENERAL, share, figure)?)),
        }
    }
    if thresholds.limits.is_empty() {
        return Err(Error::new(
            GENERAL,
            "leaves nothing to check",
            "give a figure beside none, as in ttft_p99=10%",
        ));
    }
    Ok(thresholds)
}

const GENERAL: &str = "--max-degradation";

fn split(text: &str) -> Result<(Figure, &str), Error> {
    let Some((name, share)) = text.split_once(['=', ':']) else {
        return Err(Error::new(GENERAL, format!("'{text}' is not figure=share"), "write as in ttft_p99=10%"));
    };
    let name = name.trim();
    let unknown = |error: crate::compare::UnknownFigure| {
        let near = nearest(name, NAMES).map_or_else(String::new, |near| format!("did you mean {near}? "));
        Error::new(GENERAL, format!("'{name}' is no figure"), format!("{near}{error}"))
    };
    Ok((name.parse().map_err(unknown)?, share))
}

fn once<'a>(
    seen: &mut Vec<(Figure, Against, &'a str)>,
    figure: Figure,
    against: Against,
    option: &'a str,
) -> Result<(), Error> {
    if let Some((.., before)) = seen.iter().find(|(of, than, _)| (*of, *than) == (figure, against)) {
        let wrong = match *before == option {
            true => format!("limits {figure} twice"),
            false => format!("and {before} limit the same figure, {figure}"),
        };
        return Err(Error::new(option, wrong, "give one of them"));
    }
    seen.push((figure, against, option));
    Ok(())
}

/// `10%` or `0.1`.
fn share(option: &str, text: &str, figure: Figure) -> Result<f64, Error> {
    let (digits, whole) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 100.0));
    match digits.trim().parse::<f64>() {
        Ok(number) => in_range(option, number / whole, figure),
        Err(_) => {
            Err(Error::new(option, format!("'{text}' is no share"), "give one as in 10% or 0.1, or off"))
        }
    }
}

/// `10`, in percent.
fn percent(option: &str, text: &str, figure: Figure) -> Result<f64, Error> {
    let digits = text.trim().trim_end_matches('%').trim_end();
    match digits.parse::<f64>() {
        Ok(number) => in_range(option, number / 100.0, figure),
        Err(_) => Err(Error::new(option, format!("'{text}' is no number of percent"), "give one as in 10")),
    }
}

fn in_range(option: &str, worse: f64, figure: Figure) -> Result<f64, Error> {
    if !(worse.is_finite() && worse >= 0.0) {
        return Err(Error::new(option, "is no limit on getting worse", "give 0 or more, as in 10%"));
    }
    // What falls by all, or a share that rises by all, is never worse than that.
    let is_bounded = figure.scale() == Scale::Points || figure.better() == Better::Higher;
    if is_bounded && worse >= 1.0 {
        let wrong = format!("{figure} cannot get worse by more than 100 %");
        return Err(Error::new(option, wrong, "give less than 100%, as in 10%"));
    }
    if worse > WORSE_MAX {
        let remedy = "give a share, as in 10% or 0.1";
        return Err(Error::new(option, format!("{worse} times as much is no limit"), remedy));
    }
    Ok(worse)
}

/// A limit of a hundred times as slow is a slip.
const WORSE_MAX: f64 = 100.0;
/// Names that are likely meant.
const NAMES: [&str; 14] = [
    "attainment",
    "e2e_p50",
    "e2e_p90",
    "e2e_p99",
    "failed",
    "goodput_s",
    "out_tok_s",
    "req_s",
    "total_tok_s",
    "tpot_p50",
    "tpot_p99",
    "ttft_p50",
    "ttft_p90",
    "ttft_p99",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(args: &CheckArgs) -> Vec<String> {
        let of = |limit: &Limit| format!("{}={}", limit.figure, limit.worse);
        super::of(args).unwrap().limits.iter().map(of).collect()
    }

    fn general(texts: &[&str]) -> CheckArgs {
        CheckArgs {
            max_degradation: texts.iter().map(|text| (*text).to_owned()).collect(),
            ..CheckArgs::default()
        }
    }

    #[test]
    fn options_change_the_limits_that_are_there() {
        let defaults = limits(&CheckArgs::default());
        assert_eq!(
            defaults,
            ["ttft_p50=0.05", "tpot_p50=0.05", "out_tok_s=0.05", "attainment=0.05", "failed=0.01"]
        );
        let args = CheckArgs {
            max_ttft_degradation_pct: Some("15".to_owned()),
            max_goodput_degradation_pct: Some("7.5 %".to_owned()),
            ..general(&["ttft_p99=20%", "out_tok_s=off", "tpot_p50:0.02"])
        };
        assert_eq!(
            limits(&args),
            [
                "ttft_p50=0.15",
                "tpot_p50=0.02",
                "attainment=0.05",
                "failed=0.01",
                "goodput_s=0.075",
                "ttft_p99=0.2"
            ]
        );
        assert_eq!(limits(&general(&["none", "e2el_p99=10%"])), ["e2e_p99=0.1"]);
    }

    #[test]
    fn an_error_rate_is_the_candidates_alone() {
        let args = CheckArgs { max_error_rate_pct: Some("2".to_owned()), ..general(&["none"]) };
        let limits = super::of(&args).unwrap().limits;
        assert_eq!(limits, [Limit { against: Against::Nothing, ..Limit::new(Figure::Failed, 0.02) }]);
    }

    #[test]
    fn what_is_no_limit_is_refused_with_the_option_and_a_remedy() {
        for (text, parts) in [
            ("ttft_p99", ["'ttft_p99' is not figure=share", "ttft_p99=10%"]),
            ("tttft_p99=10%", ["'tttft_p99' is no figure", "did you mean ttft_p99?"]),
            ("itl_p99=10%", ["'itl_p99' is no figure", "give a latency"]),
            ("ttft_p99=x", ["'x' is no share", "10% or 0.1"]),
            ("ttft_p99=-1%", ["no limit on getting worse", "0 or more"]),
            ("ttft_p99=inf", ["no limit on getting worse", "0 or more"]),
            ("out_tok_s=100%", ["cannot get worse by more than 100 %", "less than 100%"]),
            ("ttft_p50=50000%", ["500 times as much", "10% or 0.1"]),
            ("none", ["leaves nothing to check", "ttft_p99=10%"]),
        ] {
            let error = super::of(&general(&[text])).unwrap_err().to_string();
            assert!(error.starts_with("--max-degradation: "), "{error}");
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
        let twice = super::of(&general(&["ttft_p50=1%", "ttft_p50=2%"])).unwrap_err().to_string();
        assert!(twice.contains("limits ttft_p50 twice"), "{twice}");
        let both = CheckArgs { max_ttft_degradation_pct: Some("5".to_owned()), ..general(&["ttft_p50=2%"]) };
        let both = super::of(&both).unwrap_err().to_string();
        assert!(both.contains("--max-ttft-degradation-pct limit the same figure"), "{both}");
    }
}
