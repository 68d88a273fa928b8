//! The stored form of a run: what stands in the JSON file, apart from the types that the engines work with.
//!
//! Every block exists from version 1 on; what is not known is `null`. The version is raised when an old reader would
//! misread a new file: a key changes its meaning or goes, or an outcome, kind or unit is added. It stays when keys or
//! metrics are added, which old readers skip. The published description is `tools/schema/tokload.run.v1.schema.json`.

mod definitions;
mod distribution;
mod findings;
mod group;
mod imported;
mod knee;
mod label;
mod level;
mod merged;
mod part;
mod repeats;
mod reuse;
mod self_check;
mod slices;
mod telemetry;
mod trace;
mod turns;
mod verbatim;

pub use definitions::Definition;
pub use distribution::{BoundsBlock, DistributionBlock, Unit};
pub use findings::FindingBlock;
pub use group::GroupBlock;
pub use imported::ImportedBlock;
pub use knee::{KneeBlock, LoadPoint, Served};
pub use label::{level_label, load_label};
pub use level::{
    ExampleBlock, LengthenedBlock, LevelBlock, RatesBlock, RecordsBlock, SpanBlock, WindowBlock,
};
pub use merged::{
    CLOCKS_APART_MAX_NS, ClockOffset, LevelShareBlock, MergedBlock, MergedShareBlock, ShareNumbers,
    apart_max_ns,
};
pub use part::Part;
pub use repeats::{FigureBlock, RepeatsBlock};
pub use reuse::ReuseBlock;
pub use self_check::{
    BytesBlock, ClientErrorBlock, ConnectionsBlock, DelayBlock, HostBlock, SelfCheckBlock, ShardBlock,
};
pub use slices::SlicesBlock;
pub use telemetry::{ExporterBlock, TelemetryBlock};
pub use trace::{DataBlock, TraceBlock};
pub use turns::TurnBlock;
pub use verbatim::Verbatim;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::redact;
use super::wall::WallTime;
use crate::plan::Plan;
use crate::run::LevelResult;
use crate::strategy::Found;
use crate::summary::LevelSummary;
use crate::verdict::Verdict;

/// Name of the schema of a run file.
pub const SCHEMA: &str = "tokload.run";
/// Version of the schema that this tokload writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFile {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Version of the schema.
    pub version: u32,
    /// The program that measured.
    pub tool: ToolBlock,
    /// Wall-clock time of the run's epoch (stamp 0), RFC 3339 in UTC.
    pub created: String,
    /// `--label`.
    pub label: Option<String>,
    /// `--metadata`.
    pub metadata: BTreeMap<String, String>,
    /// What each number means.
    pub definitions: Vec<Definition>,
    /// The machine that the client ran on.
    pub environment: EnvironmentBlock,
    /// The plan, from which the run can be repeated.
    pub plan: Verbatim<Plan>,
    /// The server.
    pub target: TargetBlock,
    /// The levels that were run, in order.
    pub levels: Vec<LevelBlock>,
    /// What was found over the plan and its surroundings; `None` if nobody has looked.
    #[serde(default)]
    pub findings: Option<Vec<FindingBlock>>,
    /// What the run is worth: as much as the least of its levels, and of its plan. `None` if it is not judged.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// What the repeats of each load say together; absent where every level was run once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Vec<RepeatsBlock>>,
    /// From which load on more brings no more throughput; absent where there is no sweep of three loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<KneeBlock>,
    /// What the search for capacity has found; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Found>,
    /// The processes that made it, where several did; absent where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergedBlock>,
    /// The file of another tool that the run was made of, whose definitions are then those of its numbers; absent for runs
    /// of our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedBlock>,
    /// The trace that was sent; absent where requests were synthetic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceBlock>,
    /// The data set that prompts were taken from; absent where they were synthetic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataBlock>,
    /// Who was asked about servers, GPUs and the client's machine; `None` where nobody was.
    pub telemetry: Option<TelemetryBlock>,
    /// The record file beside this one; `None` if there is none.
    pub records: Option<SideFile>,
    /// Why there is none.
    pub records_absent: Option<String>,
    /// The file of event times beside this one.
    pub chunks: Option<SideFile>,
    /// Ended early by the user: levels may be missing and the last one is cut short.
    pub interrupted: bool,
    /// The process ended before it could save the run, or has not ended yet; absent as a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutBlock>,
}

/// What is known of a run that was made of what its process left.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutBlock {
    /// The number of the process.
    pub process: u32,
    /// It was still there when the run was looked at.
    pub running: bool,
    /// When the last known request ended, s since the run began; `None` where none is known.
    pub until_s: Option<f64>,
    /// Other processes that have left something under the same name, of which this is the newest.
    pub others: usize,
    /// Requests of the last level that the checkpoint has counted and no record tells of, beyond what may have been on the
    /// way to the disk: the records are damaged.
    #[serde(default, skip_serializing_if = "is_none")]
    pub lost: u64,
    /// Requests of the last level that have records, and no gaps in the checkpoint: it could not be kept any more.
    #[serde(default, skip_serializing_if = "is_none")]
    pub uncounted: u64,
    /// Requests of levels that were over whose records are not there: the numbers of these levels are those of histograms.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unrecorded: u64,
}

const fn is_none(requests: &u64) -> bool {
    *requests == 0
}

/// The program that measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolBlock {
    /// `tokload`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit that it was built from, where the build knew.
    pub git: Option<String>,
}

/// The machine that the client ran on, as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnvironmentBlock {
    /// Arguments of the program, secrets removed.
    pub command_line: Vec<String>,
    /// Operating system and architecture: `linux x86_64`.
    pub platform: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Name of the machine, kept of the processes that share a run; absent elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// How its wall clock stands to that of the first of the processes that share a run; absent where they did not meet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_offset: Option<ClockOffset>,
    /// Logical CPUs of the machine.
    pub cores_machine: Option<u32>,
    /// Logical CPUs that the process may use.
    pub cores_usable: Option<u32>,
    /// CPUs that shards were pinned to; empty without pinning.
    pub cores_used: Vec<u32>,
    /// Number of shards.
    pub shards: Option<u32>,
    /// Memory of the machine, bytes.
    pub memory_bytes: Option<u64>,
    /// Kernel interface of the runtime that was used: `epoll` or `io_uring`.
    pub driver: Option<String>,
    /// Open files that the process may have.
    pub open_files_max: Option<u64>,
    /// Source of the stamps: `tsc` or `clock_gettime`; [`VIRTUAL_CLOCK`] in a simulation.
    pub clock: Option<String>,
    /// Environment variables that were set and name a proxy; none is used.
    pub proxies: Vec<String>,
    /// What the last selftest found; `None` without one.
    pub selftest: Option<SelftestBlock>,
}

/// What a selftest found, as far as a run quotes it: up to which load this client is known to be exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SelftestBlock {
    /// When it was made, RFC 3339 in UTC.
    pub created: String,
    /// The error that counted as small, us: the 99th percentile of TTFT's and ITL's.
    pub error_max_us: u64,
    /// Most streams at which the error was small; `None`: it never was.
    pub streams: Option<u32>,
    /// Most content events per second at which it was.
    pub events_s: Option<u64>,
    /// No larger load was tried.
    pub at_least: bool,
    /// Content events per second of the client's CPU time.
    pub events_s_core: Option<u64>,
    /// 99th percentile of the lateness of sends at a constant rate, us.
    pub send_delay_us_p99: Option<u64>,
    /// What other programs kept busy of the machine meanwhile, per cent; `None` where that was not seen.
    pub others_percent: Option<u32>,
    /// In what it was made under other conditions than the run: `CPU`, `kernel`, `number of cores`, `version`.
    pub differs: Vec<String>,
}

/// What the server said of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetBlock {
    /// Kind of server, where it could be told: `vllm`, `llama.cpp`.
    pub kind: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The `Server` header of an answer.
    pub server_header: Option<String>,
    /// Models that it lists.
    pub models: Vec<String>,
    /// Tokens of a prompt and its answer that the model takes together; absent where it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// Addresses that the endpoints' names resolved to.
    pub addresses: Vec<String>,
    /// One of them is the client's own machine; `None` where nobody has looked.
    pub on_client_host: Option<bool>,
    /// The `Via` header of an answer: who passed it on.
    pub via: Option<String>,
    /// The same prompts were sent to it from this machine in the days before; absent: not, as far as is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_before: Option<SeenBlock>,
    /// It emptied its prefix cache before every level, or did not; absent: it was not asked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_cache_reset: Option<bool>,
    /// What the words of prompts are to it, where it could be asked; absent too where prompts are made by tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<WordsBlock>,
}

/// How words become tokens of a server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WordsBlock {
    /// Tokens of a word on average.
    pub tokens_per_word: f64,
    /// Tokens that it adds to each prompt, by its chat template as a rule; `None` where it does not say.
    pub added: Option<u32>,
}

/// Earlier runs with the same prompts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenBlock {
    /// How many.
    pub runs: u32,
    /// When the last of them began, RFC 3339 in UTC.
    pub last: String,
}

impl SeenBlock {
    /// When the last of them began, to the second.
    #[must_use]
    pub fn last_in_words(&self) -> String {
        self.last.split('.').next().unwrap_or_default().replace('T', " ") + " UTC"
    }
}

/// A file beside the run file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideFile {
    /// Its name, without a directory.
    pub file: String,
    /// Number of items in it.
    pub count: u64,
    /// Bytes of an item.
    pub item_bytes: u32,
}

/// Under this name a simulated run stores its server among its metadata, as JSON: it is no part of the plan, but a run
/// without it could not be repeated.
pub const SIMULATED_SERVER: &str = "simulated_server";
/// The clock of a simulated run.
pub const VIRTUAL_CLOCK: &str = "virtual";

impl RunFile {
    /// Why a run that was not to be saved has no records.
    pub const UNSAVED: &str = "the run was not saved";

    /// The words that go on with the search of this run, where it ended before its end; `None` where nothing can go on: it
    /// lies in no file, or a simulation would only repeat itself.
    #[must_use]
    pub fn resume_command(&self) -> Option<&'static str> {
        let is_kept = self.records_absent.as_deref() != Some(RunFile::UNSAVED);
        (is_kept && !self.is_simulated()).then_some("tokload find-capacity --resume FILE")
    }

    /// Whether no server was measured but a model of one asked, in virtual time: its endpoint is nobody's.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.environment.clock.as_deref() == Some(VIRTUAL_CLOCK)
    }

    /// A run without levels, whose epoch had the wall-clock time `created`. Secrets in the command line, and those
    /// that strayed into the plan (a header of a hand-written plan file, userinfo of a URL), are removed.
    #[must_use]
    pub fn new(
        created: WallTime,
        plan: &Plan,
        mut environment: EnvironmentBlock,
        target: TargetBlock,
    ) -> RunFile {
        environment.command_line = redact::command_line(&environment.command_line);
        RunFile {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            tool: ToolBlock::this(),
            created: created.to_string(),
            label: None,
            metadata: BTreeMap::new(),
            definitions: definitions::all(),
            environment,
            plan: Verbatim::of(&without_secrets(plan)),
            target,
            levels: Vec::new(),
            findings: None,
            verdict: None,
            repeats: None,
            knee: None,
            capacity: None,
            merged: None,
            imported: None,
            trace: None,
            data: None,
            telemetry: None,
            records: None,
            records_absent: None,
            chunks: None,
            interrupted: false,
            cut: None,
        }
    }

    /// Adds a level. Where the plan has its levels run several times, it bears the number of the round.
    pub fn push(&mut self, result: &LevelResult, summary: &LevelSummary) {
        self.interrupted |= result.interrupted;
        let mut level = LevelBlock::new(result, summary);
        level.tell_from(&self.levels);
        if let Ok(plan) = self.plan.read() {
            if plan.runs > 1 {
                level.set_repeat(plan.round(result.ordinal));
            }
            if let Some(share) = plan.share {
                level.set_share(share, result);
            }
        }
        self.levels.push(level);
    }

    /// Replaces each of `secrets` wherever text of a server or a user is kept: a server may echo the key that it
    /// refuses.
    pub fn scrub<S: AsRef<str>>(&mut self, secrets: &[S]) {
        let clean = |text: &mut String| *text = redact::values(text, secrets);
        self.environment.command_line.iter_mut().for_each(clean);
        self.label.iter_mut().for_each(clean);
        for (name, value) in &mut self.metadata {
            if redact::is_secret_name(name) {
                *value = redact::REMOVED.to_owned();
            }
            clean(value);
        }
        self.target.server_header.iter_mut().chain(&mut self.target.via).for_each(clean);
        for example in self.levels.iter_mut().flat_map(|level| &mut level.examples) {
            clean(&mut example.message);
        }
    }
}

impl ToolBlock {
    pub(super) fn this() -> ToolBlock {
        ToolBlock {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            git: option_env!("TOKLOAD_GIT").map(str::to_owned),
        }
    }

    /// Its name and how it was built.
    pub(super) fn in_words(&self) -> String {
        let git = self.git.as_deref().map_or_else(String::new, |git| format!(" ({git})"));
        format!("{} {}{git}", self.name, self.version)
    }
}

pub(super) fn without_secrets(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for header in &mut plan.target.headers {
        if redact::is_secret_name(&header.name) {
            header.value = redact::REMOVED.to_owned();
        }
    }
    for endpoint in &mut plan.target.endpoints {
        endpoint.url = redact::urls(&endpoint.url);
    }
    for url in plan.telemetry.server_metrics.iter_mut().chain(&mut plan.telemetry.dcgm) {
        *url = redact::urls(url);
    }
    for (name, value) in &mut plan.workload.extra_body {
        redact::member(name, value);
    }
    if let Some(raw) = &mut plan.target.raw
        && let Ok(mut body) = serde_json::from_str(&raw.body)
        && redact::member("", &mut body)
    {
        raw.body = body.to_string();
    }
    plan
}
