//! How long prompts and answers are, and what prompts share.

use super::{RunArgs, Surroundings, listed, names, value};
use crate::plan::{Distribution, Error, Lengths, Prefix, Workload};
use crate::workload::trace::Format;

/// Sets the lengths and the shared parts of `workload` from the options, or keeps those of the file.
///
/// - `--dataset-name prefix_repetition` is vLLM's name for a pool of prefixes and has vLLM's lengths by default.
/// - A spread (`--random-range-ratio`, `--isl-stddev`, `--osl-stddev`) is one around a length that all have.
/// - Pairs are of both lengths.
///
/// Returns remarks.
pub(super) fn set(
    args: &RunArgs,
    around: &Surroundings<'_>,
    workload: &mut Workload,
) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    data_set(args, workload)?;
    if !super::trace::is_asked(args) {
        super::data::set(args, around.tool, workload)?;
    }
    for (lengths, option, text) in [
        (&mut workload.input_words, "--random-input-len", &args.random_input_len),
        (&mut workload.output_tokens, "--random-output-len", &args.random_output_len),
    ] {
        match text.as_deref().and_then(|text| text.strip_prefix(listed::FROM_FILE)) {
            Some(file) => {
                let (read, note) = listed::lengths(option, file, around)?;
                *lengths = read;
                notes.extend(note);
            }
            None => value::set(lengths, option, text, value::lengths)?,
        }
    }
    if let Some(text) = &args.sequence_distribution {
        pairs(args, text, around, workload)?;
    }
    prefix(args, workload)?;
    sharing(args, workload)?;
    super::tokens::set(args, workload)?;
    if let Some(text) = &args.num_dataset_entries {
        workload.distinct = Some(value::integer("--num-dataset-entries", text)?);
    }
    let ratio = args.random_range_ratio.as_deref().map(range_ratio).transpose()?;
    for (lengths, least, stddev) in [
        (&mut workload.input_words, 0, ("--isl-stddev", &args.isl_stddev)),
        (&mut workload.output_tokens, 1, ("--osl-stddev", &args.osl_stddev)),
    ] {
        if let Some(ratio) = ratio {
            *lengths = ranging(centre("--random-range-ratio", lengths)?, ratio, least);
        }
        if let (option, Some(text)) = stddev {
            *lengths = varying(centre(option, lengths)?, deviation(option, text)?);
        }
    }
    Ok(notes)
}

fn pairs(
    args: &RunArgs,
    text: &str,
    around: &Surroundings<'_>,
    workload: &mut Workload,
) -> Result<(), Error> {
    for (option, is_given) in [
        ("--random-input-len", args.random_input_len.is_some()),
        ("--random-output-len", args.random_output_len.is_some()),
    ] {
        if is_given {
            let wrong = "stands beside --sequence-distribution, which gives the lengths of both";
            return Err(Error::new(option, wrong, "leave out one of the two"));
        }
    }
    [workload.input_words, workload.output_tokens] = listed::pairs("--sequence-distribution", text, around)?;
    Ok(())
}

fn data_set(args: &RunArgs, workload: &mut Workload) -> Result<(), Error> {
    match args.dataset_name.as_deref() {
        None | Some("random" | "synthetic") => Ok(()),
        // The formats of files.
        Some(name) if super::trace::is_asked(args) || Format::from_name(name).is_some() => Ok(()),
        Some("prefix_repetition") => {
            workload.input_words = 256.into();
            workload.output_tokens = 128.into();
            workload.prefix = Some(Prefix::new(256, 10));
            Ok(())
        }
        Some(name) => Err(names::refusal(name)),
    }
}

/// One prefix for all by one option, a pool by two; aiperf and vLLM write 0 for none.
fn prefix(args: &RunArgs, workload: &mut Workload) -> Result<(), Error> {
    let read = |option: &str, text: &Option<String>| -> Result<Option<u32>, Error> {
        text.as_deref().map(|text| value::integer(option, text)).transpose()
    };
    let one = read("--random-prefix-len", &args.random_prefix_len)?;
    let pool = read("--num-prefix-prompts", &args.num_prefix_prompts)?;
    let words = read("--prefix-prompt-length", &args.prefix_prompt_length)?;
    let missing = |option: &str, other: &str| {
        Error::new(option, format!("says nothing without {other}"), format!("give {other}, too"))
    };
    workload.prefix = match (one, pool, words) {
        (None, None, None) => return Ok(()),
        (Some(_), Some(1..), _) | (Some(_), _, Some(1..)) => {
            let remedy = "give one prefix by --random-prefix-len, or several by the other two";
            return Err(Error::new("--random-prefix-len", "stands beside a pool of prefixes", remedy));
        }
        (Some(words), ..) => (words > 0).then_some(Prefix::new(words, 1)),
        (None, Some(0), None | Some(0)) | (None, None, Some(0)) => None,
        (None, pool, words) => {
            // A file or a data set may have said the other half.
            let before = workload.prefix;
            let words = words.or(before.map(|prefix| prefix.words));
            let pool = pool.or(before.map(|prefix| prefix.pool));
            let words = words.ok_or_else(|| missing("--num-prefix-prompts", "--prefix-prompt-length"))?;
            let pool = pool.ok_or_else(|| missing("--prefix-prompt-length", "--num-prefix-prompts"))?;
            Some(before.map_or(Prefix::new(words, pool), |before| Prefix { words, pool, ..before }))
        }
    };
    Ok(())
}

/// How prefixes are drawn, and the system message; aiperf writes 0 for none.
fn sharing(args: &RunArgs, workload: &mut Workload) -> Result<(), Error> {
    for (option, text) in
        [("--prefix-zipf", &args.prefix_zipf), ("--prefix-hit-fraction", &args.prefix_hit_fraction)]
    {
        let Some(text) = text else { continue };
        let number = value::number(option, text)?;
        let Some(prefix) = &mut workload.prefix else {
            let remedy = "give what prompts begin with by --random-prefix-len, or by --num-prefix-prompts and \
                          --prefix-prompt-length";
            return Err(Error::new(
                option,
                "says how shared beginnings are drawn, and there are none",
                remedy,
            ));
        };
        match option {
            "--prefix-zipf" => prefix.exponent = Some(number).filter(|exponent| *exponent != 0.0),
            _ => prefix.hit_fraction = Some(number),
        }
    }
    if let Some(text) = &args.shared_system_prompt_length {
        let words = value::integer("--shared-system-prompt-length", text)?;
        workload.system_words = Some(words).filter(|words| *words > 0);
    }
    Ok(())
}

/// The length that `option` spreads.
fn centre(option: &str, lengths: &Lengths) -> Result<u32, Error> {
    lengths.fixed().ok_or_else(|| {
        let remedy = "give one of them, or a number by --random-input-len and --random-output-len";
        Error::new(option, format!("spreads lengths that differ already ({lengths})"), remedy)
    })
}

fn range_ratio(text: &str) -> Result<f64, Error> {
    let option = "--random-range-ratio";
    match value::number(option, text)? {
        ratio if (0.0..1.0).contains(&ratio) => Ok(ratio),
        ratio => {
            let remedy = "give 0 for fixed lengths, below 1 for a share either way as in vLLM (sglang writes 1 for fixed \
                          lengths and means the smallest share otherwise)";
            Err(Error::new(option, format!("{ratio} is not a share from 0 to below 1"), remedy))
        }
    }
}

pub(super) fn deviation(option: &str, text: &str) -> Result<f64, Error> {
    match value::number(option, text)? {
        stddev if stddev >= 0.0 => Ok(stddev),
        stddev => {
            let wrong = format!("{stddev} is no standard deviation");
            Err(Error::new(option, wrong, "give a number of tokens, 0 for none"))
        }
    }
}

/// vLLM's: every whole number from `floor(length (1 - ratio))`, at least `least`, to `ceil(length (1 + ratio))`.
fn ranging(length: u32, ratio: f64, least: u32) -> Lengths {
    if ratio == 0.0 {
        return Lengths::Fixed(length);
    }
    let bound = |share: f64| f64::from(length) * share;
    // `as` saturates.
    let (min, max) = (bound(1.0 - ratio).floor() as u32, bound(1.0 + ratio).ceil() as u32);
    Lengths::Drawn(Distribution::Uniform { min: min.max(least), max })
}

/// A number spread as aiperf spreads it; `least` is the smallest, 1 if absent.
pub(super) fn varying_around(
    option: &str,
    centre: &Lengths,
    stddev: f64,
    least: Option<u32>,
) -> Result<Lengths, Error> {
    let Some(mean) = centre.fixed() else {
        let remedy = "give one of them";
        return Err(Error::new(option, format!("spreads what differs already ({centre})"), remedy));
    };
    Ok(match varying(mean, stddev) {
        Lengths::Drawn(Distribution::Normal { mean, stddev, max, .. }) => {
            Lengths::Drawn(Distribution::Normal { mean, stddev, min: least, max })
        }
        fixed => fixed,
    })
}

/// aiperf's: normal around the length.
fn varying(length: u32, stddev: f64) -> Lengths {
    if stddev == 0.0 {
        return Lengths::Fixed(length);
    }
    Lengths::Drawn(Distribution::Normal { mean: f64::from(length), stddev, min: None, max: None })
}
