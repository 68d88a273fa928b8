//! `report`: a saved run again, also under other SLOs, in several forms; and the run in words.

pub(in crate::cli) mod page;

use std::path::Path;

use self::page::{Form, Place};
use crate::cli::args::ReportArgs;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::metric_view::{MetricView, Words};
use crate::cli::run::{exit_of, terminal_style};
use crate::cli::value::{self, Format};
use crate::cli::{print, vllm_result, with_stdout};
use crate::model::Settings;
use crate::plan::{Error, Slo};
use crate::report::{explain, terminal, view, vllm};
use crate::run_file::schema::SIMULATED_SERVER;
use crate::run_file::{Loaded, RunFile};

pub(super) fn main(args: &ReportArgs) -> Result<Exit, Failure> {
    let form = Form::of(args.format.as_deref(), args.output.as_deref()).map_err(Failure::bad)?;
    let place = Place::of(args.output.as_deref(), &args.runs).map_err(Failure::bad)?;
    for (option, given) in [("--explain", args.explain), ("--findings", args.findings)] {
        if given && (form != Form::Table || args.output.is_some()) {
            let remedy = "leave out one of the two";
            let wrong = "is text for a terminal, which has no place beside another format or --output";
            return Err(Failure::bad(Error::new(option, wrong, remedy)));
        }
    }
    let (first, others) = named_runs(args, form)?;
    let loaded = Loaded::open(Path::new(first)).map_err(Failure::bad)?;
    let vllm = as_vllm(args, &loaded)?;
    let slo = if args.goodput.is_empty() {
        None
    } else {
        Some(value::goodput("--goodput", &args.goodput).map_err(Failure::bad)?)
    };
    let run = judged(loaded, slo.as_ref())?;
    let overlays = others
        .iter()
        .enumerate()
        .map(|(place, path)| {
            let loaded = Loaded::open(Path::new(path)).map_err(Failure::bad)?;
            Ok((page::name_of(place + 1), judged(loaded, slo.as_ref())?))
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    // Before anything is printed: who sees the report has the pictures.
    if let Some(directory) = &args.charts {
        page::draw_all(&page::charts(&run, &overlays), directory)?;
    }
    match vllm {
        Some(levels) => vllm_block(&run, &levels, form, &place)?,
        None => page::write(form, &run, &overlays, terminal_style(), &place)?,
    }
    if args.findings {
        let noted = view::noted(&run);
        with_stdout(|mut out| {
            writeln!(out)?;
            terminal::write_notes(&noted, terminal_style(), &mut out)
        })?;
    }
    if args.explain {
        explain(&run)?;
    }
    Ok(exit_of(&run, args.strict))
}

/// The run that is reported, and those that overlay its charts.
fn named_runs(args: &ReportArgs, form: Form) -> Result<(&String, &[String]), Failure> {
    let Some((first, others)) = args.runs.split_first() else {
        return Err(Failure::bad(Error::new("report", "has no run", "give the file of a saved run")));
    };
    if !others.is_empty() && form != Form::Html && args.charts.is_none() {
        let remedy = "give --format html, or set runs side by side by tokload compare";
        return Err(Failure::bad(Error::new("report", "shows one run, several are given", remedy)));
    }
    Ok((first, others))
}

fn judged(loaded: Loaded, slo: Option<&Slo>) -> Result<RunFile, Failure> {
    match slo {
        None => Ok(loaded.run),
        Some(slo) => loaded.judged_by(slo).map_err(Failure::bad),
    }
}

/// The block of vLLM's client, which has two forms.
fn vllm_block(run: &RunFile, levels: &[vllm::Level], form: Form, place: &Place) -> Result<(), Failure> {
    let format = match (form, place) {
        (Form::Json, Place::Output) => Format::Json,
        (Form::Table, Place::Output) => Format::Table,
        _ => {
            let remedy = "leave out --output, and give --format table or json";
            let wrong = "vllm is printed as a table or as JSON only";
            return Err(Failure::bad(Error::new("--metric-view", wrong, remedy)));
        }
    };
    vllm_result::show(run, levels, format, false)
}

/// The levels as vLLM's client would have them, where they are asked for.
fn as_vllm(args: &ReportArgs, loaded: &Loaded) -> Result<Option<Vec<vllm::Level>>, Failure> {
    let words = Words {
        view: args.metric_view.as_deref(),
        figures: args.percentile_metrics.as_deref(),
        percentiles: args.metric_percentiles.as_deref(),
    };
    let is_wanted = words.view(MetricView::Tokload).map_err(Failure::bad)? == MetricView::Vllm;
    let plan = loaded.run.plan.read().ok();
    let generates = plan.as_ref().is_none_or(|plan| plan.target.dialect.generates());
    let Some(selection) = words.selection(is_wanted, generates).map_err(Failure::bad)? else {
        return Ok(None);
    };
    let slo = match plan {
        _ if !args.goodput.is_empty() => value::goodput("--goodput", &args.goodput).map_err(Failure::bad)?,
        Some(plan) => plan.slo,
        None => Slo::default(),
    };
    vllm::recorded(loaded, &slo, generates, &selection).map(Some).map_err(Failure::bad)
}

/// Refuses `option`, which prints text, where the output is not for reading.
pub(super) fn for_reading(option: &str, format: Format) -> Result<(), Error> {
    match format {
        Format::Table => Ok(()),
        Format::Json => {
            let remedy = "leave out one of the two";
            Err(Error::new(option, "is text, which --format json has no place for", remedy))
        }
    }
}

/// Prints a run in words, with what a simulated one says of its server.
pub(super) fn explain(run: &RunFile) -> Result<(), Failure> {
    if let Some(share) = run.plan.read().ok().and_then(|plan| plan.share).filter(|share| share.of > 1) {
        let wrong = format!("this is share {share}: what bends the curve is the load of all");
        return Err(Failure::bad(Error::new("--explain", wrong, "merge the shares by tokload merge first")));
    }
    let model = run.metadata.get(SIMULATED_SERVER).filter(|_| run.is_simulated());
    // One of a later tokload is explained by its numbers alone, as a measured one is.
    let model: Option<Settings> = model.and_then(|text| serde_json::from_str(text).ok());
    let mut text = Vec::new();
    explain::write(run, model.as_ref(), &mut text).map_err(Failure::own)?;
    match text.is_empty() {
        true => print("\nthere is nothing to explain: no request ended well"),
        false => print(String::from_utf8_lossy(&text).trim_end()),
    }
}
