//! `report`: a saved run again, also under other SLOs, in several forms; and the run in words.

mod page;

use std::path::Path;

use self::page::{Form, Place};
use crate::cli::args::ReportArgs;
use crate::cli::exit::Exit;
use crate::cli::export::Export;
use crate::cli::failure::Failure;
use crate::cli::metric_view::{MetricView, Words};
use crate::cli::others_view::OthersView;
use crate::cli::run::{exit_of, name_files, terminal_style, terminal_width};
use crate::cli::value::{self, Format};
use crate::cli::{aiperf_result, print, vllm_result, with_stdout};
use crate::model::Settings;
use crate::plan::{Error, Slo};
use crate::report::{aiperf, explain, terminal, view, vllm};
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
    let exports = Export::all(&args.export).map_err(Failure::bad)?;
    for export in &exports {
        page::none_of("--export", export.path(), &args.runs).map_err(Failure::bad)?;
    }
    exports.iter().try_for_each(|export| export.check_run(&loaded.run))?;
    exports.iter().try_for_each(|export| export.check(args.force))?;
    let limits = slo(args, &loaded.run)?;
    let again = Some(&limits).filter(|_| !args.goodput.is_empty());
    // While the records are at hand: the table of all tools has our numbers beside the others'.
    let run = judged(&loaded, again)?;
    let shown = as_others(args, &loaded, &run, &limits)?;
    let mut written = Vec::new();
    for export in &exports {
        written.extend(export.write(&loaded, &limits)?);
    }
    let overlays = others
        .iter()
        .enumerate()
        .map(|(place, path)| {
            let loaded = Loaded::open(Path::new(path)).map_err(Failure::bad)?;
            Ok((page::name_of(place + 1), judged(&loaded, again)?))
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    // Before anything is printed: who sees the report has the pictures.
    if let Some(directory) = &args.charts {
        page::draw_all(&page::charts(&run, &overlays), directory)?;
    }
    match shown {
        Shown::Tokload => page::write(form, &run, &overlays, terminal_style(), &place)?,
        Shown::Vllm(levels) => vllm_result::show(&run, &levels, block_format(form, &place)?, false)?,
        Shown::Aiperf(levels) => {
            let format = block_format(form, &place)?;
            aiperf_result::show(&run, &levels, format, terminal_width(), false)?;
        }
        Shown::Others(others) => {
            let OthersView { view, json } = *others;
            page::write_view(form, &view, run.verdict, &json, terminal_style(), &place)?;
        }
    }
    if form == Form::Table && args.output.is_none() {
        name_files(Format::Table, None, &written)?;
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
        return Err(Failure::bad(Error::new("tokload report", "has no run", "give the file of a saved run")));
    };
    if !others.is_empty() && form != Form::Html && args.charts.is_none() {
        let remedy = "give --format html, or set runs side by side by tokload compare";
        return Err(Failure::bad(Error::new("tokload report", "shows one run, several are given", remedy)));
    }
    Ok((first, others))
}

fn judged(loaded: &Loaded, slo: Option<&Slo>) -> Result<RunFile, Failure> {
    match slo {
        None => Ok(loaded.run.clone()),
        Some(slo) => loaded.judged_by(slo).map_err(Failure::bad),
    }
}

/// The format of another tool's block, which has two forms.
fn block_format(form: Form, place: &Place) -> Result<Format, Failure> {
    match (form, place) {
        (Form::Json, Place::Output) => Ok(Format::Json),
        (Form::Table, Place::Output) => Ok(Format::Table),
        _ => {
            let remedy = "leave out --output, and give --format table or json";
            let wrong = "is printed as a table or as JSON only";
            Err(Failure::bad(Error::new("--metric-view", wrong, remedy)))
        }
    }
}

/// Whose numbers are shown, with the levels as that tool would have them.
enum Shown {
    Tokload,
    Vllm(Vec<vllm::Level>),
    Aiperf(Vec<aiperf::Level>),
    /// Further tools, or all of them.
    Others(Box<OthersView>),
}

fn as_others(args: &ReportArgs, loaded: &Loaded, run: &RunFile, slo: &Slo) -> Result<Shown, Failure> {
    let words = Words {
        view: args.metric_view.as_deref(),
        figures: args.percentile_metrics.as_deref(),
        percentiles: args.metric_percentiles.as_deref(),
    };
    let view = words.view(MetricView::Tokload).map_err(Failure::bad)?;
    let plan = loaded.run.plan.read().ok();
    let generates = plan.as_ref().is_none_or(|plan| plan.target.dialect.generates());
    let selection = words.selection(view == MetricView::Vllm, generates).map_err(Failure::bad)?;
    if let Some(selection) = selection {
        return vllm::recorded(loaded, slo, generates, &selection).map(Shown::Vllm).map_err(Failure::bad);
    }
    if view == MetricView::Aiperf {
        return aiperf::recorded(loaded, slo).map(Shown::Aiperf).map_err(Failure::bad);
    }
    let others = OthersView::of(loaded, run, view, slo).map_err(Failure::bad)?;
    Ok(others.map_or(Shown::Tokload, |others| Shown::Others(Box::new(others))))
}

/// The limits that requests are judged by: those that were typed, or the run's own.
fn slo(args: &ReportArgs, run: &RunFile) -> Result<Slo, Failure> {
    if !args.goodput.is_empty() {
        return value::goodput("--goodput", &args.goodput).map_err(Failure::bad);
    }
    Ok(run.plan.read().map_or_else(|_| Slo::default(), |plan| plan.slo))
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
