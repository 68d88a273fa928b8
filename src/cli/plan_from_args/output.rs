//! What becomes of the result.

use std::time::Duration;

use super::{Output, RunArgs, Tool, value};
use crate::cli::aiperf_result::AiperfOutput;
use crate::cli::export::Export;
use crate::cli::metric_view::{MetricView, Words};
use crate::cli::value::Format;
use crate::cli::vllm_result::{ResultFile, VllmOutput};
use crate::plan::{Error, Plan};
use crate::report::export::Needs;
use crate::report::progress::Ui;

/// Reads what becomes of the result, and sets in `plan` what has to be kept for that.
pub(super) fn output(args: &RunArgs, tool: Tool, plan: &mut Plan) -> Result<Output, Error> {
    let saves_vllms = args.save_result || args.append_result;
    if args.no_save {
        for (option, given) in [
            ("--output-file", args.output_file.is_some()),
            ("--result-dir", args.result_dir.is_some()),
            ("--save-detailed", args.save_detailed && !saves_vllms),
            ("--save-chunks", args.save_chunks),
            ("--export", !args.export.is_empty()),
        ] {
            if given {
                return Err(Error::new(option, "contradicts --no-save", "give one of them"));
            }
        }
    }
    let view = Words { view: args.metric_view.as_deref(), ..Words::default() }.view(match tool {
        Tool::Vllm => MetricView::Vllm,
        Tool::Aiperf => MetricView::Aiperf,
        Tool::Tokload => MetricView::Tokload,
    })?;
    let is_of_others = matches!(view, MetricView::Other(_) | MetricView::All);
    let exports = Export::all(&args.export)?;
    let needs = exports.iter().map(Export::needs).max().unwrap_or(Needs::Nothing);
    if plan.slice_s.is_none() && exports.iter().any(|export| export.needs() == Needs::Slices) {
        let wrong = "slices are those of --slice-duration, which is not given";
        return Err(Error::new("--export", wrong, "give a length as well, as in --slice-duration 10s"));
    }
    let vllm = vllm(args, tool, view, plan)?;
    // aiperf always leaves its files behind.
    let aiperf = AiperfOutput {
        is_shown: view == MetricView::Aiperf,
        is_saved: tool == Tool::Aiperf && !args.no_save && !args.no_records,
    };
    let aiperf = Some(aiperf).filter(|aiperf| aiperf.is_shown || aiperf.is_saved);
    if args.no_records {
        for (option, given) in [
            ("--save-detailed", args.save_detailed),
            ("--save-chunks", args.save_chunks),
            ("--save-result", saves_vllms),
            ("--export", needs >= Needs::Records),
            ("--metric-view", vllm.is_some() || aiperf.is_some() || is_of_others),
        ] {
            if given {
                let wrong = "needs the records that --no-records gives up";
                return Err(Error::new(option, wrong, "give one of them"));
            }
        }
    }
    plan.keep.records &= !args.no_records;
    // Others' numbers have a value for each event.
    let by_events = vllm.is_some() || aiperf.is_some() || is_of_others || needs == Needs::Events;
    plan.keep.chunks |= args.save_chunks || by_events;
    Ok(Output {
        file: args.output_file.clone(),
        share: plan.share,
        start_at: args.start_at.as_deref().map(|text| value::start_at("--start-at", text)).transpose()?,
        share_timeout: args.share_timeout.as_deref().map(share_timeout).transpose()?,
        dir: args.result_dir.clone(),
        no_save: args.no_save,
        force: args.force,
        detailed: args.save_detailed && !args.no_save,
        exports,
        view,
        vllm,
        aiperf,
        label: args.label.clone(),
        metadata: args
            .metadata
            .iter()
            .map(|text| value::fact("--metadata", text))
            .collect::<Result<_, _>>()?,
        format: args
            .format
            .as_deref()
            .map_or(Ok(Format::default()), |text| value::format("--format", text))?,
        quiet: args.quiet,
        one_line: false,
        ui: ui(args)?,
        metrics_listen: args
            .metrics_listen
            .as_deref()
            .map(|text| value::listen("--metrics-listen", text))
            .transpose()?,
        metrics_linger: metrics_linger(args)?,
    })
}

/// How long shares wait for each other.
fn share_timeout(text: &str) -> Result<Duration, Error> {
    let seconds = value::seconds("--share-timeout", text)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let wrong = format!("'{text}' is too long to wait");
        Error::new("--share-timeout", wrong, "give seconds, or as 90s, 5m, 1h")
    })
}

/// How long the endpoint for metrics stays open when the run is saved.
fn metrics_linger(args: &RunArgs) -> Result<Duration, Error> {
    let Some(text) = &args.metrics_linger else { return Ok(Duration::ZERO) };
    let option = "--metrics-linger";
    if args.metrics_listen.is_none() {
        let wrong = "keeps open what --metrics-listen opens, which is not given";
        return Err(Error::new(option, wrong, "give --metrics-listen as well, or leave it out"));
    }
    Duration::try_from_secs_f64(value::seconds(option, text)?).map_err(|_| {
        let remedy = "give seconds, or as 30s, 2m: twice the interval at which it is asked is enough";
        Error::new(option, format!("'{text}' is too long to stay"), remedy)
    })
}

/// What is shown while the run goes on.
fn ui(args: &RunArgs) -> Result<Ui, Error> {
    let asked = args.ui.as_deref().map(|text| value::ui("--ui", text)).transpose()?;
    match asked {
        Some(Ui::Dashboard | Ui::Simple) if args.no_progress => {
            Err(Error::new("--no-progress", "contradicts --ui", "give one of them"))
        }
        Some(Ui::Dashboard) if args.quiet => {
            Err(Error::new("--quiet", "contradicts --ui dashboard", "give one of them"))
        }
        _ if args.no_progress => Ok(Ui::None),
        asked => Ok(asked.unwrap_or_default()),
    }
}

/// vLLM's block is what its command line prints, and its file what `--save-result` writes on any.
fn vllm(args: &RunArgs, tool: Tool, view: MetricView, plan: &Plan) -> Result<Option<VllmOutput>, Error> {
    let words = Words {
        view: args.metric_view.as_deref(),
        figures: args.percentile_metrics.as_deref(),
        percentiles: args.metric_percentiles.as_deref(),
    };
    let is_shown = view == MetricView::Vllm;
    let is_saved = args.save_result || args.append_result;
    if args.result_filename.is_some() && !is_saved {
        let wrong = "names the file of --save-result, which is not written";
        return Err(Error::new("--result-filename", wrong, "give --save-result as well"));
    }
    let Some(selection) = words.selection(is_shown || is_saved, plan.target.dialect.generates())? else {
        return Ok(None);
    };
    let file = is_saved.then(|| ResultFile {
        name: args.result_filename.clone(),
        appends: args.append_result,
        // Scripts that call vLLM's client again and again rest on it.
        overwrites: args.force || tool == Tool::Vllm,
        detailed: args.save_detailed,
    });
    Ok(Some(VllmOutput { selection, is_shown, file }))
}
