//! The data set that prompts are taken from, by the options of every tool.

use super::{RunArgs, Tool, trace, value};
use crate::plan::{Compat, DataSet, Error, Filter, LengthRule, Workload};
use crate::workload::trace::Format;

/// Sets the data set of `workload`, or changes that of the file.
///
/// A length of answers that is given wins over those of the data set. On a command line of vLLM prompts are chosen as there.
pub(super) fn set(args: &RunArgs, tool: Tool, workload: &mut Workload) -> Result<(), Error> {
    let named = args.dataset_name.as_deref().and_then(Format::from_name);
    if let Some(file) = &args.dataset_path {
        named_for_a_file(args)?;
        workload.data = Some(DataSet::of(file));
        if let (Some(data), Tool::Vllm) = (&mut workload.data, tool) {
            data.compat = Some(Compat::Vllm);
        }
    }
    let Some(data) = &mut workload.data else { return without(args, named) };
    trace::has_prompts_of_its_own(args, "a data set", args.random_prefix_len.as_deref())?;
    if let Some(format) = named {
        data.format = Some(format.name().to_owned());
    }
    if let Some(name) = &args.trace_format {
        data.format = Some(trace::format("--trace-format", name)?);
    }
    if args.dataset_column.is_some() {
        data.column.clone_from(&args.dataset_column);
    }
    if let Some(text) = &args.compat {
        data.compat = compat(text)?;
    }
    for text in &args.dataset_lengths {
        filter(text, &mut data.filter)?;
    }
    value::set(&mut data.errors, "--trace-errors", &args.trace_errors, trace::errors)?;
    data.shuffle &= !args.disable_shuffle;
    if args.random_output_len.is_some() || args.osl_stddev.is_some() {
        data.lengths = LengthRule::Planned;
    }
    Ok(())
}

fn compat(text: &str) -> Result<Option<Compat>, Error> {
    match text {
        "vllm" => Ok(Some(Compat::Vllm)),
        "none" => Ok(None),
        _ => Err(Error::new(
            "--compat",
            format!("there are no rules of '{text}'"),
            "give vllm, or none for our own",
        )),
    }
}

/// `prompt:4-1024,answer:4-,total:-2048`: either end may be left out.
fn filter(text: &str, filter: &mut Filter) -> Result<(), Error> {
    let option = "--dataset-lengths";
    for item in text.split(',') {
        let wrong = || {
            let remedy = "give ranges of tokens, as in prompt:4-1024,answer:4-,total:-2048";
            Error::new(option, format!("'{item}' is no range of lengths"), remedy)
        };
        let (what, range) = item.trim().split_once(':').ok_or_else(wrong)?;
        let (min, max) = range.split_once('-').ok_or_else(wrong)?;
        let bound = |text: &str| match text.trim() {
            "" => Ok(None),
            digits => value::integer::<u32>(option, digits).map(Some).map_err(|_| wrong()),
        };
        let place = match what.trim() {
            "prompt" => (&mut filter.prompt_min, &mut filter.prompt_max),
            "answer" => (&mut filter.answer_min, &mut filter.answer_max),
            "total" => (&mut filter.total_min, &mut filter.total_max),
            _ => return Err(wrong()),
        };
        (*place.0, *place.1) = (bound(min)?, bound(max)?);
    }
    Ok(())
}

/// The names of data sets that are no format of a file.
fn named_for_a_file(args: &RunArgs) -> Result<(), Error> {
    let Some(name) = args.dataset_name.as_deref().filter(|name| Format::from_name(name).is_none()) else {
        return Ok(());
    };
    if ["random", "synthetic", "prefix_repetition"].contains(&name) {
        let names = Format::ALL.map(Format::name).join(", ");
        let remedy = format!("leave it out, or give the file's format: {names}");
        return Err(Error::new("--dataset-name", format!("'{name}' is no format of a file"), remedy));
    }
    Err(super::names::refusal(name))
}

fn without(args: &RunArgs, named: Option<Format>) -> Result<(), Error> {
    if let Some(format) = named {
        let wrong = format!("'{}' is in a file, and none is named", format.name());
        let remedy = match format {
            Format::Dolly => {
                "give --dataset-path FILE, databricks-dolly-15k.jsonl of databricks/databricks-dolly-15k; nothing is \
                 downloaded here"
            }
            Format::ShareGpt => {
                "give --dataset-path FILE, as ShareGPT_V3_unfiltered_cleaned_split.json; nothing is downloaded here"
            }
            Format::BurstGpt => {
                "give --dataset-path FILE, as BurstGPT_without_fails_2.csv of HPMLL/BurstGPT; nothing is downloaded here"
            }
            _ => "give --dataset-path FILE; nothing is downloaded here",
        };
        return Err(Error::new("--dataset-name", wrong, remedy));
    }
    for (option, is_given) in [
        ("--dataset-column", args.dataset_column.is_some()),
        ("--dataset-lengths", !args.dataset_lengths.is_empty()),
        ("--compat", args.compat.is_some()),
        ("--disable-shuffle", args.disable_shuffle),
    ] {
        if is_given {
            let wrong = "says how a file of prompts is read, and there is none";
            return Err(Error::new(option, wrong, "give --dataset-path FILE"));
        }
    }
    Ok(())
}
