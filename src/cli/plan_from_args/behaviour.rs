//! What users do beside asking: which model they ask for, who goes away, who reads slowly.

use super::{RunArgs, value};
use crate::plan::{Aborts, Error, ModelChoice, SlowReaders, Target, Workload};

/// Sets the models and the choice among them. Names given by options leave none of the file's weights behind.
///
/// The adapters of `--lora-modules` take the place of the model, as in vLLM: requests ask for one of them by its name,
/// drawn by the seed unless `--lora-assignment` says otherwise.
pub(super) fn models(args: &RunArgs, target: &mut Target, notes: &mut Vec<String>) -> Result<(), Error> {
    let named = if !args.lora_modules.is_empty() {
        if args.served_model_name.is_some() || !args.model.is_empty() {
            notes.push("requests ask for the adapters of --lora-modules and for none of --model".to_owned());
        }
        target.model_choice = ModelChoice::Drawn;
        Some(args.lora_modules.clone())
    } else if let Some(name) = &args.served_model_name {
        Some(vec![name.clone()])
    } else {
        (!args.model.is_empty()).then(|| args.model.clone())
    };
    if let Some(models) = named {
        target.models = models;
        target.model_weights.clear();
    }
    if let Some(text) = &args.model_weights {
        target.model_weights = value::list("--model-weights", text, value::integer)?;
    }
    choice(args, target)
}

fn choice(args: &RunArgs, target: &mut Target) -> Result<(), Error> {
    let (option, text) = match (&args.lora_assignment, &args.model_selection_strategy) {
        (None, None) => return Ok(()),
        (Some(_), Some(_)) => {
            let wrong = "says the same as --model-selection-strategy";
            return Err(Error::new("--lora-assignment", wrong, "give one of them"));
        }
        (Some(_), None) if args.lora_modules.is_empty() => {
            let remedy = "give the adapters by --lora-modules, or --model-selection-strategy";
            return Err(Error::new("--lora-assignment", "there is no adapter to choose", remedy));
        }
        (Some(text), None) => ("--lora-assignment", text),
        (None, Some(text)) => ("--model-selection-strategy", text),
    };
    target.model_choice = match text.replace('_', "-").as_str() {
        "random" => ModelChoice::Drawn,
        "round-robin" => ModelChoice::InTurn,
        "weighted" if target.model_weights.is_empty() => {
            let remedy = "give one for each model by --model-weights, as in 3,1";
            return Err(Error::new(option, "there are no weights", remedy));
        }
        "weighted" => ModelChoice::Drawn,
        _ => {
            let wrong = format!("'{text}' is not a way to choose");
            return Err(Error::new(option, wrong, "give round-robin, random or weighted"));
        }
    };
    Ok(())
}

/// Sets who goes away and who reads slowly; what the options leave out is the file's.
pub(super) fn set(args: &RunArgs, workload: &mut Workload) -> Result<(), Error> {
    aborts(args, &mut workload.aborts)?;
    slow_readers(args, &mut workload.slow_readers)
}

fn aborts(args: &RunArgs, aborts: &mut Option<Aborts>) -> Result<(), Error> {
    if let Some(text) = &args.request_cancellation_rate {
        let percent = value::number(CANCELLATION_RATE, text)?;
        let kept = aborts.take().unwrap_or_default();
        // aiperf's 0 is its default: nobody goes away.
        *aborts = (percent != 0.0).then(|| Aborts { share: percent / 100.0, ..kept });
        if aborts.is_none() {
            return Ok(());
        }
    }
    let after_s = args.request_cancellation_delay.as_deref();
    let after_s = after_s.map(|text| value::seconds("--request-cancellation-delay", text)).transpose()?;
    let after_tokens = args.request_cancellation_tokens.as_deref();
    let after_tokens =
        after_tokens.map(|text| value::integer("--request-cancellation-tokens", text)).transpose()?;
    let Some(aborts) = aborts else {
        let when = [
            ("--request-cancellation-delay", after_s.is_some()),
            ("--request-cancellation-tokens", after_tokens.is_some()),
        ];
        return needs(&when, "says when requests are given up, and none is", CANCELLATION_RATE, "in percent");
    };
    aborts.after_s = after_s.or(aborts.after_s);
    aborts.after_tokens = after_tokens.or(aborts.after_tokens);
    Ok(())
}

fn slow_readers(args: &RunArgs, slow_readers: &mut Option<SlowReaders>) -> Result<(), Error> {
    if let Some(text) = &args.read_rate {
        let bytes_per_s = value::integer("--read-rate", text)?;
        let share = slow_readers.map_or(1.0, |slow| slow.share);
        *slow_readers = Some(SlowReaders { share, bytes_per_s });
    }
    let share = args.slow_reader_share.as_deref();
    let share = share.map(|text| value::number("--slow-reader-share", text)).transpose()?;
    match slow_readers {
        Some(slow) => {
            slow.share = share.unwrap_or(slow.share);
            Ok(())
        }
        None => needs(
            &[("--slow-reader-share", share.is_some())],
            "says how many read slowly, and nobody does",
            "--read-rate",
            "in bytes per second",
        ),
    }
}

/// The first of `options` that is given means nothing without `other`.
fn needs(options: &[(&str, bool)], wrong: &str, other: &str, unit: &str) -> Result<(), Error> {
    match options.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Error::new(*option, wrong, format!("give {other} as well, {unit}"))),
        None => Ok(()),
    }
}

const CANCELLATION_RATE: &str = "--request-cancellation-rate";
