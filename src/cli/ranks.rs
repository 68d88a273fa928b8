//! Which of several processes of one run this one is, told by whoever started them: `srun`, `mpirun`, a Kubernetes Job.
//!
//! It looks at variables that are handed in and at nothing else. The innermost launcher wins: an `mpirun` within a Slurm
//! job starts its processes by one Slurm task per node, whose variables they inherit and which are not theirs.

use crate::plan::{Error, Share};
use crate::rng::mixed;

#[cfg(test)]
mod tests;

/// The place of a process among those that a launcher has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Which part of the run is its own.
    pub share: Share,
    /// The variables that say so, as in `SLURM_PROCID of SLURM_NTASKS`.
    pub by: String,
    /// What the launcher calls this start of its processes: the same for all of them, another for the next run. `None`
    /// where it has no name.
    pub job: Option<String>,
    /// Which it is of how many on its own host, from 0; `None` where that is not told.
    pub local: Option<(u32, u32)>,
}

impl Rank {
    /// A seed that all processes of the job have, and those of another one not; `None` where the job has no name.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        let job = self.job.as_ref()?;
        Some(job.bytes().fold(mixed(job.len() as u64), |seed, byte| mixed(seed ^ u64::from(byte))))
    }

    /// The cores of `usable` that are this process's where the launcher has bound none of those of its host to any: every
    /// so manieth. `None`: all that it may use, because it is alone, or was bound to some of the `machine`'s already.
    #[must_use]
    pub fn cores(&self, usable: &[u32], machine: Option<u32>) -> Option<Vec<u32>> {
        let (rank, size) = self.local.filter(|(_, size)| *size > 1)?;
        if machine.is_none_or(|cores| usable.len() < cores as usize) {
            return None;
        }
        Some(usable.iter().copied().skip(rank as usize).step_by(size as usize).collect())
    }
}

/// Where a launcher says which process it is, and of how many.
struct Launcher {
    rank: &'static str,
    size: &'static [&'static str],
    /// What is said where one of both is missing.
    missing: &'static str,
    local: (&'static str, &'static str),
    job: &'static [&'static str],
}

/// The launchers of MPI, whose variables count before those of the scheduler around them.
const MPI: [Launcher; 3] = [
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        size: &["OMPI_COMM_WORLD_SIZE"],
        missing: "mpirun of Open MPI sets both",
        local: ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        job: &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"],
    },
    Launcher {
        rank: "PMI_RANK",
        size: &["PMI_SIZE"],
        missing: "mpiexec of MPICH sets both",
        local: ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
        job: &["PMI_JOBID", "PALS_APID"],
    },
    Launcher {
        rank: "PMIX_RANK",
        size: &["PMIX_SIZE", "TOKLOAD_COMPLETIONS"],
        missing: "a launcher of PMIx that tells the rank alone needs the number of processes in PMIX_SIZE",
        local: ("PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE"),
        job: &["PMIX_NAMESPACE"],
    },
];

/// Step ids from here on are no steps that `srun` has made: the batch script, the shell of `salloc`, and the like.
const STEP_ID_MAX: u32 = 0xffff_fff0;
/// What gives a run of processes a name where the launcher has none, or another than its own.
const JOB: &str = "TOKLOAD_JOB";
const REMEDY: &str = "say it by --share I/N, or make the whole load in this process by --share none";
/// The same where half of it is said: what says it may be there by mistake.
const REMEDY_OF_HALF: &str = "say which share it is by --share I/N; or, if this process is alone, unset the variable or give --share none";

type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What the environment says; `None` where no launcher is there, or it has started one process alone.
///
/// # Errors
/// A rank without a size or a size without a rank, numbers that are none, a rank beyond the size, two launchers that
/// contradict each other.
pub fn of_environment(env: Env<'_>) -> Result<Option<Rank>, Error> {
    let mut found: Option<Rank> = None;
    // PMIx tells a rank in the steps of other launchers as well, which know the size: it is wrong only if nobody does.
    let mut half = None;
    for launcher in &MPI {
        let rank = match mpi(launcher, env) {
            Err(Unknown::Half(error)) if launcher.rank == "PMIX_RANK" => {
                half = Some(error);
                continue;
            }
            other => other?,
        };
        let Some(rank) = rank else { continue };
        match &found {
            None => found = Some(rank),
            Some(first) if first.share == rank.share => {}
            Some(first) => {
                let wrong =
                    format!("{} says share {}, {} says share {}", first.by, first.share, rank.by, rank.share);
                return Err(Error::new("--share", wrong, REMEDY));
            }
        }
    }
    let mut found = match found {
        // `srun` speaks PMI to its tasks, and has names for what PMI has none for.
        Some(rank) if rank.job.is_none() => {
            let step = slurm(env).ok().and_then(Step::rank).filter(|step| step.share == rank.share);
            Some(step.map_or(rank.clone(), |step| Rank { job: step.job, local: step.local, ..rank }))
        }
        Some(rank) => Some(rank),
        None => match slurm(env)? {
            Step::Of(rank) => Some(rank),
            Step::Alone => return Ok(None),
            Step::None => match kubernetes(env)? {
                None => return half.map_or(Ok(None), Err),
                found => found,
            },
        },
    };
    if let Some(rank) = &mut found
        && let Some(job) = said(env, JOB)
    {
        rank.job = Some(job);
    }
    Ok(found.filter(|rank| rank.share.of > 1))
}

/// Why a launcher's variables say no rank.
enum Unknown {
    /// One of rank and size is missing.
    Half(Error),
    /// They are none.
    Wrong(Error),
}

impl From<Unknown> for Error {
    fn from(unknown: Unknown) -> Error {
        let (Unknown::Half(error) | Unknown::Wrong(error)) = unknown;
        error
    }
}

fn mpi(launcher: &Launcher, env: Env<'_>) -> Result<Option<Rank>, Unknown> {
    let number = |name| number(env, name).map_err(Unknown::Wrong);
    let rank = number(launcher.rank)?;
    // A count of pods is no size of a launcher's own where no rank asks for one.
    let sizes = if rank.is_some() { launcher.size } else { &launcher.size[..1] };
    let size = sizes.iter().find(|name| said(env, name).is_some());
    let size = size.map(|name| Ok((*name, number(name)?.unwrap_or_default()))).transpose()?;
    let missing = |set: &str, value: u32, missing: &str| {
        let wrong = format!("{set} is {value} and {missing} is not set; {}", launcher.missing);
        Err(Unknown::Half(Error::new("--share", wrong, REMEDY_OF_HALF)))
    };
    let (rank, size) = match (rank, size) {
        (Some(rank), Some(size)) => (rank, size),
        (None, Some((_, 0 | 1)) | None) => return Ok(None),
        (Some(rank), None) => return missing(launcher.rank, rank, launcher.size[0]),
        (None, Some((name, size))) => return missing(name, size, launcher.rank),
    };
    let job = launcher.job.iter().find_map(|name| said(env, name));
    let local = number(launcher.local.0)?.zip(number(launcher.local.1)?);
    let of = rank_of((launcher.rank, rank), size).map_err(Unknown::Wrong)?;
    Ok(Some(Rank { share: of.0, by: of.1, job, local }))
}

/// What Slurm says of a process.
enum Step {
    /// It is a task of a step of several.
    Of(Rank),
    /// It is the only task of its step.
    Alone,
    /// It is no task of a step.
    None,
}

impl Step {
    fn rank(self) -> Option<Rank> {
        if let Step::Of(rank) = self { Some(rank) } else { None }
    }
}

/// A step of Slurm. A job's own variables say nothing: a shell of `salloc` has `SLURM_NTASKS` too, and is alone.
fn slurm(env: Env<'_>) -> Result<Step, Error> {
    let step = match number(env, "SLURM_STEP_ID")? {
        Some(step) => Some(step),
        None => number(env, "SLURM_STEPID")?,
    };
    let Some(step) = step.filter(|step| *step < STEP_ID_MAX) else { return Ok(Step::None) };
    let sizes = ["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"];
    let Some(name) = sizes.into_iter().find(|name| said(env, name).is_some()) else {
        let Some(rank) = number(env, "SLURM_PROCID")? else { return Ok(Step::None) };
        let wrong = format!("SLURM_PROCID is {rank} and {} is not set; srun sets both", sizes[1]);
        return Err(Error::new("--share", wrong, REMEDY_OF_HALF));
    };
    let size = number(env, name)?.unwrap_or_default();
    if size == 1 {
        return Ok(Step::Alone);
    }
    let Some(rank) = number(env, "SLURM_PROCID")? else {
        let wrong = format!("{name} is {size} and SLURM_PROCID is not set; srun sets both");
        return Err(Error::new("--share", wrong, REMEDY_OF_HALF));
    };
    let (share, by) = rank_of(("SLURM_PROCID", rank), (name, size))?;
    // A job that was requeued has its number, and its steps are counted anew.
    let restarts = number(env, "SLURM_RESTART_COUNT")?.filter(|count| *count > 0);
    let job = said(env, "SLURM_JOB_ID").or_else(|| said(env, "SLURM_JOBID")).map(|job| match restarts {
        None => format!("slurm-{job}-{step}"),
        Some(count) => format!("slurm-{job}-{step}-restart-{count}"),
    });
    Ok(Step::Of(Rank { share, by, job, local: slurm_local(env)? }))
}

/// The place on the node: which is told, of how many stands in a list as `2(x3),1`, one number a node.
fn slurm_local(env: Env<'_>) -> Result<Option<(u32, u32)>, Error> {
    let (Some(rank), Some(node)) = (number(env, "SLURM_LOCALID")?, number(env, "SLURM_NODEID")?) else {
        return Ok(None);
    };
    let lists = ["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"];
    let list = lists.into_iter().find_map(|name| said(env, name)).unwrap_or_default();
    let mut nodes = list.split(',').map(|part| match part.split_once("(x") {
        Some((tasks, times)) => {
            (tasks.parse::<u32>(), times.trim_end_matches(')').parse::<u32>().unwrap_or(1))
        }
        None => (part.parse(), 1),
    });
    let mut before = 0_u32;
    let size = nodes.find_map(|(tasks, times)| {
        before = before.saturating_add(times);
        (node < before).then_some(tasks.ok()).flatten()
    });
    Ok(size.filter(|size| rank < *size).map(|size| (rank, size)))
}

/// A pod of an indexed Job. Kubernetes tells the index and not of how many: the manifest has to.
fn kubernetes(env: Env<'_>) -> Result<Option<Rank>, Error> {
    const INDEX: &str = "JOB_COMPLETION_INDEX";
    let names = ["TOKLOAD_COMPLETIONS", "JOB_COMPLETIONS"];
    let [own, usual] = names.map(|name| number(env, name));
    let (own, usual) = (own?, usual?);
    let Some(index) = number(env, INDEX)? else {
        // Kubernetes sets neither: whoever has, meant several.
        let several = names.into_iter().zip([own, usual]).find_map(|(name, count)| Some((name, count?)));
        return match several.filter(|(_, count)| *count > 1) {
            Some((name, count)) => {
                let wrong = format!(
                    "{name} is {count} and {INDEX} is not set: the Job is no indexed one (completionMode: Indexed), and each \
                     pod would make the whole load"
                );
                Err(Error::new("--share", wrong, REMEDY_OF_HALF))
            }
            None => Ok(None),
        };
    };
    if let (Some(own), Some(usual)) = (own, usual)
        && own != usual
    {
        let wrong = format!("{} is {own} and {} is {usual}", names[0], names[1]);
        return Err(Error::new("--share", wrong, REMEDY));
    }
    let Some(name) = names.into_iter().find(|name| said(env, name).is_some()) else {
        let wrong = format!(
            "{INDEX} is {index} and nothing says of how many: Kubernetes does not. Set {} in the manifest to its \
             completions",
            names[0]
        );
        return Err(Error::new("--share", wrong, REMEDY_OF_HALF));
    };
    let size = number(env, name)?.unwrap_or_default();
    let (share, by) = rank_of((INDEX, index), (name, size))?;
    Ok(Some(Rank { share, by, job: None, local: None }))
}

fn rank_of(rank: (&str, u32), size: (&str, u32)) -> Result<(Share, String), Error> {
    let by = format!("{} of {}", rank.0, size.0);
    if rank.1 >= size.1 {
        let wrong =
            format!("{} is {} and {} is {}: ranks are counted from 0", rank.0, rank.1, size.0, size.1);
        return Err(Error::new("--share", wrong, REMEDY));
    }
    if size.1 > Share::OF_MAX {
        let wrong =
            format!("{} is {}, more than the {} shares that a run may have", size.0, size.1, Share::OF_MAX);
        return Err(Error::new("--share", wrong, REMEDY));
    }
    Ok((Share { index: rank.1 + 1, of: size.1 }, by))
}

fn said(env: Env<'_>, name: &str) -> Option<String> {
    env(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn number(env: Env<'_>, name: &str) -> Result<Option<u32>, Error> {
    let Some(text) = said(env, name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        Error::new("--share", format!("{name} is '{text}', which is no rank or number of processes"), REMEDY)
    })
}

/// Refuses a command that several processes cannot make together, and that each would make on its own.
///
/// # Errors
/// It is one of several, or its environment contradicts itself.
pub fn alone(command: &str, share: Option<&str>, env: Env<'_>) -> Result<(), Error> {
    if share == Some("none") {
        return Ok(());
    }
    let Some(rank) = of_environment(env)? else { return Ok(()) };
    let wrong = format!(
        "this is process {} ({}), and tokload {command} is one process's: each would load the server on its own",
        rank.share, rank.by
    );
    Err(Error::new("--share", wrong, "start it once, as in srun -n 1; or share a load out with tokload run"))
}
