//! The data set that prompts are taken from, by the options of every tool.

use super::{RunArgs, trace};
use crate::plan::{DataSet, Error, LengthRule, Workload};
use crate::workload::trace::Format;

/// Sets the data set of `workload`, or changes that of the file.
///
/// A length of answers that is given wins over those of the data set.
pub(super) fn set(args: &RunArgs, workload: &mut Workload) -> Result<(), Error> {
    let named = args.dataset_name.as_deref().and_then(Format::from_name);
    if let Some(file) = &args.dataset_path {
        named_for_a_file(args)?;
        workload.data = Some(DataSet::of(file));
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
    super::value::set(&mut data.errors, "--trace-errors", &args.trace_errors, trace::errors)?;
    data.shuffle &= !args.disable_shuffle;
    if args.random_output_len.is_some() || args.osl_stddev.is_some() {
        data.lengths = LengthRule::Planned;
    }
    Ok(())
}

/// The names of data sets that are no format of a file.
fn named_for_a_file(args: &RunArgs) -> Result<(), Error> {
    let Some(name) = args.dataset_name.as_deref().filter(|name| Format::from_name(name).is_none()) else {
        return Ok(());
    };
    let names = Format::ALL.map(Format::name).join(", ");
    let remedy = format!("leave it out, or give the file's format: {names}");
    Err(Error::new("--dataset-name", format!("'{name}' is no format of a file"), remedy))
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
            _ => "give --dataset-path FILE; nothing is downloaded here",
        };
        return Err(Error::new("--dataset-name", wrong, remedy));
    }
    for (option, is_given) in
        [("--dataset-column", args.dataset_column.is_some()), ("--disable-shuffle", args.disable_shuffle)]
    {
        if is_given {
            let wrong = "says how a file of prompts is read, and there is none";
            return Err(Error::new(option, wrong, "give --dataset-path FILE"));
        }
    }
    Ok(())
}
