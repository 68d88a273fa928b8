//! One run of the shares of a run: what processes on one host or many measured, as if one had.
//!
//! Owns what may be merged, where the parts stand on one time line, and the adding. No number is computed here: parts
//! become the result of a level, which is summarised and judged as that of one process is. Records are copied one by one;
//! those of one level at a time are in memory, as in a run of one process.

mod agree;
mod cut;
mod error;
mod level;
mod place;
mod records;
mod telemetry;

use std::path::{Path, PathBuf};

use super::gathering::Sign;
use super::read::Loaded;
use super::schema::{
    EnvironmentBlock, LevelBlock, MergedBlock, MergedShareBlock, RunFile, TargetBlock, Verbatim,
};
use super::wall::WallTime;
use super::write::{self, Destination};
use crate::plan::{Client, Plan, Share};
use crate::summary::telemetry::Ours;
use crate::summary::{self, Users};
use crate::verdict::Verdict;
use crate::workload::Content;

pub use error::MergeError;
pub use place::Align;

use level::Parts;
use records::Copies;

/// How shares are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Merge what there is, although shares are missing.
    pub allow_missing: bool,
    /// Where the parts of a level stand.
    pub align: Align,
}

/// The file of one share.
#[derive(Debug)]
struct Member {
    path: PathBuf,
    loaded: Loaded,
    plan: Plan,
    share: Share,
    /// Wall-clock time of its epoch; `None` in virtual time.
    epoch: Option<WallTime>,
}

/// Merges the shares in `files` to the run `into`, whose side files are then complete; the run file itself is the
/// caller's to write.
///
/// # Errors
/// Files that are no shares, or not of one run; shares that are missing or there twice; whatever cannot be read or written.
/// Nothing is left behind then.
pub fn merge(files: &[PathBuf], into: &Destination, options: Options) -> Result<RunFile, MergeError> {
    let members = agree::members(files, options.allow_missing)?;
    let mut copies = Copies::open(&members, into)?;
    let merged = assemble(&members, &mut copies, options);
    match merged.and_then(|run| copies.finish(run)) {
        Ok(run) => Ok(run),
        Err(error) => {
            copies.discard();
            Err(error)
        }
    }
}

fn assemble(members: &[Member], copies: &mut Copies, options: Options) -> Result<RunFile, MergeError> {
    let plan = common_plan(members, copies.are_kept());
    let first = &members[0].loaded.run;
    let mut notes = agree::notes(members);
    notes.extend(agree::last_signs(members).iter().map(Sign::in_words));
    notes.extend(agree::not_taken(members));
    let levels = levels(members, &mut notes)?;
    let mut line = place::Line::default();
    let mut results = Vec::new();
    for parts in &levels {
        let placed = line.place(parts, options.align)?;
        results.push((parts, placed));
    }
    let created = line.created(members);
    let mut run = RunFile::new(created, &plan, common_environment(members), common_target(members));
    // What was removed from the plan of a share was removed for good reasons.
    run.plan = Verbatim::of(&plan);
    run.tool = first.tool.clone();
    run.definitions.clone_from(&first.definitions);
    run.label = common(members, |run| &run.label).flatten();
    run.metadata = first.metadata.clone();
    run.metadata.retain(|name, value| members.iter().all(|m| m.loaded.run.metadata.get(name) == Some(value)));
    (run.trace, run.data) = (first.trace.clone(), first.data.clone());
    for (parts, placed) in results {
        let mut result = level::result(parts, &placed)?;
        let records = copies.level(parts, &placed)?;
        result.records = records.as_ref().map(|(range, _)| *range);
        let input = summary::Input::new(&result, records.as_ref().map(|(_, all)| all.as_slice()), plan.slo);
        let users = users(members, &result.level);
        let input = summary::Input { steady_cut: plan.steady_cut, users, ..input };
        let numbers = summary::level(&input);
        run.push(&result, &numbers);
        if let Some(block) = run.levels.last_mut() {
            block.telemetry = telemetry::level(parts, &placed, &Ours::of(&numbers));
            // What a file's prompts share, only a process that has the file can say.
            if let Some((_, records)) = records.as_ref().filter(|_| !plan.workload.is_recorded()) {
                block.find_reuse(&Content::new(&plan), plan.level_seed(block.ordinal), records);
            }
            if let Some((_, records)) = &records {
                block.look_at(&plan, records, &plan.slo);
            }
            block.shares = Some(level::shares(parts, &placed));
            if members.len() < members[0].share.of as usize {
                let offered =
                    offered(members, &result.level).map_or_else(String::new, |load| format!(": {load}"));
                let (there, of) = (members.len(), members[0].share.of);
                block.label = format!("{}, {there} of {of} shares{offered}", block.label);
            }
        }
        notes.extend(level::notes(parts, &placed));
    }
    run.telemetry = telemetry::block(members);
    run.interrupted = members.iter().any(|member| member.loaded.run.interrupted);
    run.merged = Some(block(members, notes));
    run.compare_repeats();
    run.find_knee();
    run.judge();
    if members.iter().any(|member| member.loaded.run.cut.is_some_and(|cut| cut.lost > 0)) {
        // What is left of a share is no fair part of what it measured.
        run.verdict = Some(Verdict::Invalid);
    }
    Ok(run)
}

/// The levels that every share has run, with the parts of each.
fn levels<'a>(members: &'a [Member], notes: &mut Vec<String>) -> Result<Vec<Parts<'a>>, MergeError> {
    let blocks = |member: &'a Member| member.loaded.run.levels.as_slice();
    let most = members.iter().map(|member| blocks(member).len()).max().unwrap_or(0);
    let all = members.iter().map(|member| blocks(member).len()).min().unwrap_or(0);
    if all == 0 {
        let without = members.iter().find(|member| blocks(member).is_empty());
        let path = without.map_or_else(PathBuf::new, |member| member.path.clone());
        return Err(MergeError::NoLevel { path });
    }
    if most > all {
        notes.push(format!(
            "the last {} of {most} levels are left out: not every share came to them",
            most - all
        ));
    }
    (0..all)
        .map(|place| {
            let of: Vec<(&Member, &LevelBlock)> =
                members.iter().map(|member| (member, &blocks(member)[place])).collect();
            Parts::of(&of)
        })
        .collect()
}

fn block(members: &[Member], notes: Vec<String>) -> MergedBlock {
    let share = |member: &Member| MergedShareBlock {
        share: member.share.index,
        file: write::file_name(&member.path),
        created: member.loaded.run.created.clone(),
        label: member.loaded.run.label.clone(),
        interrupted: member.loaded.run.interrupted,
        environment: member.loaded.run.environment.clone(),
    };
    MergedBlock {
        of: members[0].share.of,
        missing: agree::missing(members),
        shares: members.iter().map(share).collect(),
        notes,
    }
}

/// The plan of all of them: what each host has of its own is left open.
fn common_plan(members: &[Member], records: bool) -> Plan {
    let mut plan = members[0].plan.clone();
    plan.share = None;
    plan.keep.records = records;
    // A share that was cut has lost them.
    let has_chunks = |member: &Member| member.plan.keep.chunks && member.loaded.run.cut.is_none();
    plan.keep.chunks &= members.iter().all(has_chunks);
    let usual = Client::default();
    let all = |same: &dyn Fn(&Client) -> bool| members.iter().all(|member| same(&member.plan.client));
    let client = plan.client.clone();
    if !all(&|other| other.workers == client.workers) {
        plan.client.workers = usual.workers;
    }
    if !all(&|other| other.affinity == client.affinity) {
        plan.client.affinity = usual.affinity;
    }
    if !all(&|other| other.driver == client.driver) {
        plan.client.driver = usual.driver;
    }
    plan
}

/// What is true of every machine; each has its own block as well.
fn common_environment(members: &[Member]) -> EnvironmentBlock {
    let first = &members[0].loaded.run.environment;
    let shards: Option<Vec<u32>> =
        members.iter().map(|member| member.loaded.run.environment.shards).collect();
    EnvironmentBlock {
        command_line: first.command_line.clone(),
        platform: common(members, |run| &run.environment.platform).flatten(),
        kernel: common(members, |run| &run.environment.kernel).flatten(),
        cpu_model: common(members, |run| &run.environment.cpu_model).flatten(),
        host: common(members, |run| &run.environment.host).flatten(),
        clock_offset: None,
        cores_machine: common(members, |run| &run.environment.cores_machine).flatten(),
        cores_usable: common(members, |run| &run.environment.cores_usable).flatten(),
        cores_used: Vec::new(),
        shards: shards.map(|shards| shards.iter().sum()),
        memory_bytes: common(members, |run| &run.environment.memory_bytes).flatten(),
        driver: common(members, |run| &run.environment.driver).flatten(),
        open_files_max: common(members, |run| &run.environment.open_files_max).flatten(),
        clock: common(members, |run| &run.environment.clock).flatten(),
        proxies: union(members, |run| &run.environment.proxies),
        selftest: None,
    }
}

fn common_target(members: &[Member]) -> TargetBlock {
    let any = |of: fn(&TargetBlock) -> Option<bool>| {
        let said = members.iter().filter_map(|member| of(&member.loaded.run.target));
        said.reduce(|a, b| a || b)
    };
    let emptied = members.iter().filter_map(|member| member.loaded.run.target.prefix_cache_reset);
    TargetBlock {
        kind: common(members, |run| &run.target.kind).flatten(),
        version: common(members, |run| &run.target.version).flatten(),
        server_header: common(members, |run| &run.target.server_header).flatten(),
        models: common(members, |run| &run.target.models).unwrap_or_default(),
        context_tokens: common(members, |run| &run.target.context_tokens).flatten(),
        addresses: union(members, |run| &run.target.addresses),
        on_client_host: any(|target| target.on_client_host),
        via: members.iter().find_map(|member| member.loaded.run.target.via.clone()),
        seen_before: members
            .iter()
            .filter_map(|member| member.loaded.run.target.seen_before.clone())
            .max_by(|a, b| a.last.cmp(&b.last)),
        prefix_cache_reset: emptied.reduce(|a, b| a && b),
        words: common(members, |run| &run.target.words).flatten(),
    }
}

/// What all say; `None` where they differ.
fn common<T: Clone + PartialEq>(members: &[Member], of: fn(&RunFile) -> &T) -> Option<T> {
    let first = of(&members[0].loaded.run);
    members.iter().all(|member| of(&member.loaded.run) == first).then(|| first.clone())
}

fn union(members: &[Member], of: fn(&RunFile) -> &Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = members.iter().flat_map(|member| of(&member.loaded.run)).cloned().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The load that the shares offered which are there, in words; `None` where nothing of it can be counted.
fn offered(members: &[Member], level: &crate::plan::Level) -> Option<String> {
    let own = |n: u32| members.iter().map(|member| member.share.count_u32(n)).sum::<u32>();
    if let Some(users) = level.load.users {
        return Some(format!("{} users", own(users)));
    }
    let rate = level.load.rate().filter(|rate| rate.is_finite());
    let rate = rate.map(|rate| members.iter().map(|member| member.share.rate(rate)).sum::<f64>());
    // To the sixth digit: three quarters of a tenth are no 0.07500000000000001.
    let rate = rate.map(|rate| format!("{}/s", (rate * 1e6).round() / 1e6));
    let cap = level.load.cap.map(|cap| format!("cap {}", own(cap)));
    rate.into_iter().chain(cap).reduce(|rate, cap| format!("{rate} {cap}"))
}

/// The users of the shares that are there.
fn users(members: &[Member], level: &crate::plan::Level) -> Option<Users> {
    let whole = Users::of(&level.load, Share::WHOLE)?;
    let own = members.iter().filter_map(|member| Users::of(&level.load, member.share));
    Some(Users { n: own.map(|users| users.n).sum(), ..whole })
}

impl Member {
    fn at(path: &Path) -> Result<Member, MergeError> {
        let loaded = Loaded::open(path).map_err(MergeError::Read)?;
        let malformed = |source| MergeError::Malformed { path: path.to_owned(), source };
        let run = &loaded.run;
        if run.imported.is_some() {
            return Err(MergeError::Imported { path: path.to_owned() });
        }
        if run.merged.is_some() {
            return Err(MergeError::Merged { path: path.to_owned() });
        }
        let plan = run.plan.read().map_err(malformed)?;
        let share = plan.share.ok_or_else(|| MergeError::Whole { path: path.to_owned() })?;
        let epoch = if run.is_simulated() { None } else { Some(WallTime::parse(&run.created)) };
        let no_time = || MergeError::NoTime { path: path.to_owned(), text: run.created.clone() };
        let epoch = epoch.map(|epoch| epoch.ok_or_else(no_time)).transpose()?;
        Ok(Member { path: path.to_owned(), plan, share, epoch, loaded })
    }
}
