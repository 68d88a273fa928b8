//! From what was typed to what it means: the plan, the secrets beside it, and what to do with the result.
//!
//! Owns the rules by which options make levels. It opens no file, reads no clock and no environment: whatever it needs
//! of the world is handed in as [`Surroundings`].

use core::net::SocketAddr;
use std::time::Duration;

use super::aiperf_result::AiperfOutput;
use super::aliases::Tool;
use super::args::RunArgs;
use super::export::Export;
use super::metric_view::MetricView;
use super::presets;
use super::ranks::Rank;
use super::value::{self, Format, StartAt};
use super::vllm_result::VllmOutput;
use crate::metrics::metric::Metric;
use crate::plan::{Declared, Error, Figure, Limits, Plan, Sampling, Secrets, Share, Slo, Until, Workload};
use crate::report::progress::Ui;
use crate::stats::Quantile;

mod behaviour;
mod conversation;
mod data;
mod lengths;
mod levels;
mod listed;
mod names;
mod output;
mod rates;
pub mod search;
pub(super) mod share;
mod stress;
mod target;
mod telemetry;
mod tokens;
mod tool_defaults;
mod trace;

/// What the meaning of arguments depends on besides themselves.
pub struct Surroundings<'a> {
    /// Whose command line it is.
    pub tool: Tool,
    /// The seed if none is given.
    pub fresh_seed: u64,
    /// Name and text of the file named by `--config`.
    pub config: Option<(&'a str, &'a str)>,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file that an option names.
    pub read: &'a dyn Fn(&str) -> std::io::Result<String>,
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// A run as it was ordered. Its plan is complete and valid, except that models may be missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The whole truth of the run.
    pub plan: Plan,
    /// What is sent and never stored.
    pub secrets: Secrets,
    /// What becomes of the result.
    pub output: Output,
    /// How long to wait for a server that is not ready, s.
    pub ready_check_s: f64,
    /// Share of failed requests above which the run has failed; `None`: only if all failed.
    pub failed_share_max: Option<f64>,
    /// An invalid measurement has an exit code of its own.
    pub strict: bool,
    /// Print the plan and end.
    pub print_config: bool,
    /// Print the plan and its first requests and end.
    pub dry_run: bool,
    /// Remarks for the user, one line each.
    pub notes: Vec<String>,
    /// Which process of several it is, where a launcher has started several.
    pub rank: Option<Rank>,
}

/// What becomes of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Where it is saved; `None`: under a name made of the time.
    pub file: Option<String>,
    /// Directory of the files that have no path of their own; `None`: the current one.
    pub dir: Option<String>,
    /// The share of a run that it is, by which the file is named too.
    pub share: Option<Share>,
    /// When it begins; `None`: as soon as it can.
    pub start_at: Option<StartAt>,
    /// How long shares wait for each other.
    pub share_timeout: Option<Duration>,
    /// Save nothing.
    pub no_save: bool,
    /// Overwrite a file.
    pub force: bool,
    /// Save the records as JSON lines too.
    pub detailed: bool,
    /// Forms of other tools that it is written in.
    pub exports: Vec<Export>,
    /// Whose definitions the numbers that are printed have.
    pub view: MetricView,
    /// What of vLLM's is printed and saved.
    pub vllm: Option<VllmOutput>,
    /// What of aiperf's is printed and saved.
    pub aiperf: Option<AiperfOutput>,
    /// Name of the run.
    pub label: Option<String>,
    /// Facts to store with it.
    pub metadata: Vec<(String, String)>,
    /// Format of standard output.
    pub format: Format,
    /// Neither progress nor notes.
    pub quiet: bool,
    /// One line when it is through all the same, of a share beside others.
    pub one_line: bool,
    /// What is shown while it runs; less where it is to be quiet.
    pub ui: Ui,
    /// Where the run's metrics can be asked for while it goes on; `None`: nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// How long that stays open when the run is saved; 0: it closes at once.
    pub metrics_linger: Duration,
}

impl Output {
    /// Other numbers than ours are printed.
    pub(in crate::cli) fn is_others(&self) -> bool {
        self.view != MetricView::Tokload
    }
}

/// The run that `args` order.
///
/// A plan is built in layers: the defaults (of the tool whose command line it is), the file of `--config`, the options.
/// Options that shape the load (`--request-rate`, `--max-concurrency`, `--arrival-pattern`, `--burstiness` and the like)
/// replace the levels of the file; those that end or lengthen it apply to every level.
///
/// # Errors
/// Values that cannot be read, combinations that make no sense, and whatever [`Plan::validate`] refuses.
pub fn order(args: &RunArgs, around: &Surroundings<'_>) -> Result<Order, Error> {
    let preset = args.preset.clone();
    let args = &presets::apply(args)?;
    let mut notes = Vec::new();
    let mut secrets = Secrets::default();
    let mut plan = base(around)?;
    if let Some(text) = &args.seed {
        plan.seed = value::integer("--seed", text)?;
    }
    target::set(args, &mut plan.target, &mut secrets)?;
    behaviour::models(args, &mut plan.target, &mut notes)?;
    behaviour::set(args, &mut plan.workload)?;
    target::api_key(args.api_key.as_deref(), around.env, &mut secrets)?;
    workload(args, around, &mut plan.workload, &mut notes)?;
    if around.config.is_none() {
        tool_defaults::after_options(args, around.tool, &mut plan.workload, &mut notes);
    }
    levels::set(args, around.tool, &mut plan)?;
    stress::set(args, &mut plan)?;
    value::set(&mut plan.runs, "--num-runs", &args.num_runs, value::integer)?;
    if let Some(text) = &args.share {
        let share = value::share("--share", text)?;
        plan.share = share.or(plan.share.filter(|_| text != "none"));
    }
    limits(args, &mut plan.limits)?;
    if !args.goodput.is_empty() {
        plan.slo = value::goodput("--goodput", &args.goodput)?;
        let dialect = plan.target.dialect;
        if !dialect.generates() && plan.slo != (Slo { e2e_ms: plan.slo.e2e_ms, ..Slo::default() }) {
            let wrong = format!("answers of the API {} have no tokens to wait for", dialect.name());
            return Err(Error::new("--goodput", wrong, "give e2e alone, as in e2e:100"));
        }
    }
    until(args, &mut plan)?;
    client(args, &mut plan)?;
    telemetry::set(args, &mut plan.telemetry)?;
    declared(args, &mut plan.declared)?;
    let mut output = output::output(args, around.tool, &mut plan)?;
    output.metadata.extend(preset.map(|name| ("preset".to_owned(), name)));
    notes.extend(left_out(args, &mut plan));
    plan.complete();
    rates::exact_count(args, around.tool, &mut plan, &mut notes)?;
    plan.validate().map_err(|error| rates::as_typed(args, error))?;
    notes.extend(share::notes(&plan));
    notes.extend(target::connections::idle_tls(&plan));

    let ready = args.ready_check_timeout_sec.as_deref();
    let ready_check_s = ready.map_or(Ok(0.0), |text| value::seconds("--ready-check-timeout-sec", text))?;
    let failed_share_max = args
        .failed_request_threshold
        .as_deref()
        .map(|text| share("--failed-request-threshold", text))
        .transpose()?;
    Ok(Order {
        plan,
        secrets,
        output,
        ready_check_s,
        failed_share_max,
        strict: args.strict,
        print_config: args.print_config,
        dry_run: args.dry_run,
        notes,
        rank: None,
    })
}

/// The plan before any option: that of the file, or the tool's defaults.
fn base(around: &Surroundings<'_>) -> Result<Plan, Error> {
    let seed = around.fresh_seed & FRESH_SEED_MASK;
    if let Some((name, text)) = around.config {
        return Plan::from_toml(text, seed).map_err(|error| error.in_file(name));
    }
    let mut plan = Plan::new(seed);
    tool_defaults::before_options(around.tool, &mut plan);
    Ok(plan)
}

fn workload(
    args: &RunArgs,
    around: &Surroundings<'_>,
    workload: &mut Workload,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    notes.extend(lengths::set(args, around, workload)?);
    conversation::set(args, workload)?;
    if workload.conversation.is_some() && args.num_prompts.is_some() && args.max_sessions.is_none() {
        notes.push(
            "--num-prompts is the number of sessions, each with all of its turns; aiperf's --request-count is one of requests"
                .to_owned(),
        );
    }
    value::set(&mut workload.choices, "--n", &args.n, value::integer)?;
    if args.ignore_eos && args.no_ignore_eos {
        return Err(Error::new("--ignore-eos", "contradicts --no-ignore-eos", "give one of them"));
    }
    if args.ignore_eos || args.no_ignore_eos {
        workload.options.ignore_eos = args.ignore_eos;
    }
    workload.options.continuous_usage |= args.continuous_usage_stats;
    sampling(args, &mut workload.sampling)?;
    for text in &args.extra_body {
        workload.extra_body.append(&mut value::json_object("--extra-body", text)?);
    }
    Ok(())
}

/// What was asked for in so many words and does not exist in the API.
fn left_out(args: &RunArgs, plan: &mut Plan) -> Option<String> {
    let asked = [
        ("ignore_eos", "--ignore-eos", args.ignore_eos),
        ("continuous_usage_stats", "--continuous-usage-stats", args.continuous_usage_stats),
    ];
    let off = plan.fit_dialect();
    let asked = asked.into_iter().filter(|(field, _, given)| *given && off.contains(field));
    let options: Vec<&str> = asked.map(|(_, option, _)| option).collect();
    let dialect = plan.target.dialect.name();
    (!options.is_empty())
        .then(|| format!("the API {dialect} has no {}: requests go without", options.join(", ")))
}

fn sampling(args: &RunArgs, sampling: &mut Sampling) -> Result<(), Error> {
    for (place, option, text) in [
        (&mut sampling.temperature, "--temperature", &args.temperature),
        (&mut sampling.top_p, "--top-p", &args.top_p),
        (&mut sampling.min_p, "--min-p", &args.min_p),
        (&mut sampling.frequency_penalty, "--frequency-penalty", &args.frequency_penalty),
        (&mut sampling.presence_penalty, "--presence-penalty", &args.presence_penalty),
        (&mut sampling.repetition_penalty, "--repetition-penalty", &args.repetition_penalty),
    ] {
        if let Some(text) = text {
            *place = Some(value::number(option, text)?);
        }
    }
    if let Some(text) = &args.top_k {
        let top_k = text.trim().parse().map_err(|_| {
            Error::new(
                "--top-k",
                format!("'{text}' is not a whole number"),
                "give a number of tokens, -1 for all",
            )
        })?;
        sampling.top_k = Some(top_k);
    }
    Ok(())
}

fn limits(args: &RunArgs, limits: &mut Limits) -> Result<(), Error> {
    value::set(&mut limits.connect_s, "--connect-timeout", &args.connect_timeout, value::seconds)?;
    value::set(&mut limits.first_s, "--first-token-timeout", &args.first_token_timeout, value::seconds)?;
    value::set(&mut limits.gap_s, "--no-progress-timeout", &args.no_progress_timeout, value::seconds)?;
    value::set(
        &mut limits.total_s,
        "--request-timeout-seconds",
        &args.request_timeout_seconds,
        value::seconds,
    )
}

fn until(args: &RunArgs, plan: &mut Plan) -> Result<(), Error> {
    if let Some(text) = &args.until_ci {
        let (figure, half_width) = value::until("--until-ci", text)?;
        let usual = if plan.slo.is_empty() {
            Figure::Quantile(Metric::Ttft, Quantile::P50)
        } else {
            Figure::Attainment
        };
        let times_max = plan.until.map_or(Until::times_max(), |until| until.times_max);
        plan.until = Some(Until { figure: figure.unwrap_or(usual), half_width, times_max });
    }
    match (&args.until_ci_max, &mut plan.until) {
        (Some(text), Some(until)) => until.times_max = value::integer("--until-ci-max", text)?,
        (Some(_), None) => {
            let wrong = "says how long --until-ci may take";
            return Err(Error::new("--until-ci-max", wrong, "give --until-ci as well, as in --until-ci 5%"));
        }
        (None, _) => {}
    }
    Ok(())
}

fn client(args: &RunArgs, plan: &mut Plan) -> Result<(), Error> {
    value::set(&mut plan.steady_cut, "--steady-cut", &args.steady_cut, value::steady_cut)?;
    if let Some(text) = &args.slice_duration {
        plan.slice_s = Some(value::seconds("--slice-duration", text)?);
    }
    let client = &mut plan.client;
    if let Some(text) = &args.workers {
        client.workers = Some(value::integer("--workers", text)?);
    }
    if args.no_cpu_affinity && args.cpu_affinity.is_some() {
        return Err(Error::new("--no-cpu-affinity", "contradicts --cpu-affinity", "give one of them"));
    }
    if args.no_cpu_affinity {
        client.affinity = Some(Vec::new());
    } else if let Some(text) = &args.cpu_affinity {
        client.affinity = Some(value::cores("--cpu-affinity", text)?);
    }
    value::set(&mut client.driver, "--driver", &args.driver, value::driver)?;
    value::set(&mut client.timestamps, "--timestamps", &args.timestamps, value::timestamps)?;
    if let Some(text) = &args.client_burn {
        client.burn = Some(value::burn("--client-burn", text)?);
    }
    value::set(&mut client.start_spread_us, "--start-spread", &args.start_spread, value::number)
}

fn declared(args: &RunArgs, declared: &mut Declared) -> Result<(), Error> {
    for (fact, option, yes, no) in [
        (&mut declared.fresh_server, "fresh-server", args.fresh_server, args.no_fresh_server),
        (
            &mut declared.same_as_production,
            "same-as-production",
            args.same_as_production,
            args.no_same_as_production,
        ),
    ] {
        match (yes, no) {
            (true, true) => {
                let remedy = "give one of them";
                return Err(Error::new(format!("--{option}"), format!("contradicts --no-{option}"), remedy));
            }
            (false, false) => {}
            _ => *fact = Some(yes),
        }
    }
    Ok(())
}

fn share(option: &str, text: &str) -> Result<f64, Error> {
    match value::number(option, text) {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(Error::new(
            option,
            format!("'{text}' is not a share"),
            "give a number from 0 to 1, as in 0.05",
        )),
    }
}

/// Fresh seeds have 53 bits: readers of JSON that know only floats then keep them whole.
const FRESH_SEED_MASK: u64 = (1 << 53) - 1;
