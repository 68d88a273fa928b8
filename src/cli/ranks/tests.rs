use super::*;

/// Looks at `A=1 B=2`.
fn seen(variables: &str) -> Result<Option<Rank>, String> {
    let env = |name: &str| {
        let mut pairs = variables.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    };
    of_environment(&env).map_err(|error| error.to_string())
}

fn share(variables: &str) -> Option<(u32, u32)> {
    seen(variables).unwrap().map(|rank| (rank.share.index, rank.share.of))
}

#[test]
fn each_launcher_says_which_process_it_is() {
    for (variables, expected) in [
        ("", None),
        ("SLURM_STEP_ID=0 SLURM_PROCID=2 SLURM_NTASKS=4", Some((3, 4))),
        ("SLURM_STEPID=0 SLURM_PROCID=0 SLURM_NTASKS=4", Some((1, 4))),
        // A step of fewer tasks than the job.
        ("SLURM_STEP_ID=1 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=4", Some((2, 2))),
        ("SLURM_STEP_ID=1 SLURM_PROCID=0 SLURM_NTASKS=1", None),
        // Shells of a job, which are alone whatever the job may have.
        ("SLURM_JOB_ID=5 SLURM_NTASKS=4", None),
        ("SLURM_JOB_ID=5 SLURM_NTASKS=4 SLURM_PROCID=0", None),
        ("SLURM_STEP_ID=4294967290 SLURM_PROCID=0 SLURM_NTASKS=4", None),
        ("SLURM_STEP_ID=4294967291 SLURM_PROCID=0 SLURM_NTASKS=4", None),
        ("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3", Some((2, 3))),
        ("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", None),
        ("PMI_RANK=7 PMI_SIZE=8", Some((8, 8))),
        ("PMIX_RANK=1 PMIX_SIZE=2", Some((2, 2))),
        ("OMPI_COMM_WORLD_SIZE=1", None),
        ("PMIX_RANK=0 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1", None),
        ("PMIX_RANK=1 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2", Some((2, 2))),
        ("PMIX_RANK=1 TOKLOAD_COMPLETIONS=4", Some((2, 4))),
        ("PMIX_RANK=1 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2", Some((2, 2))),
        ("JOB_COMPLETION_INDEX=0 TOKLOAD_COMPLETIONS=5", Some((1, 5))),
        ("JOB_COMPLETION_INDEX=4 JOB_COMPLETIONS=5", Some((5, 5))),
        ("JOB_COMPLETION_INDEX=0 JOB_COMPLETIONS=1", None),
        // mpirun within a job: its own processes are what counts, not the daemons that Slurm has started.
        (
            "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 PMIX_RANK=5",
            Some((6, 8)),
        ),
        ("PMI_RANK=1 PMI_SIZE=4 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=4", Some((2, 4))),
        // Variables that are empty are not set.
        ("OMPI_COMM_WORLD_RANK= SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2", Some((2, 2))),
    ] {
        assert_eq!(share(variables), expected, "{variables}");
    }
}

#[test]
fn what_contradicts_itself_is_refused_with_its_names() {
    for (variables, parts) in [
        ("SLURM_STEP_ID=0 SLURM_PROCID=4 SLURM_NTASKS=4", ["SLURM_PROCID is 4", "counted from 0"]),
        ("SLURM_STEP_ID=0 SLURM_NTASKS=4", ["SLURM_PROCID is not set", "srun"]),
        ("SLURM_STEP_ID=0 SLURM_PROCID=one SLURM_NTASKS=4", ["SLURM_PROCID is 'one'", "--share none"]),
        ("SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=0", ["SLURM_NTASKS is 0", "counted from 0"]),
        ("SLURM_STEP_ID=0 SLURM_PROCID=0", ["SLURM_NTASKS is not set", "srun"]),
        ("TOKLOAD_COMPLETIONS=3", ["JOB_COMPLETION_INDEX is not set", "completionMode: Indexed"]),
        ("JOB_COMPLETION_INDEX= TOKLOAD_COMPLETIONS=2", ["JOB_COMPLETION_INDEX is not set", "--share none"]),
        (
            "JOB_COMPLETION_INDEX=0 TOKLOAD_COMPLETIONS=2 JOB_COMPLETIONS=3",
            ["TOKLOAD_COMPLETIONS is 2", "JOB_COMPLETIONS is 3"],
        ),
        ("OMPI_COMM_WORLD_RANK=1", ["OMPI_COMM_WORLD_SIZE is not set", "Open MPI"]),
        ("OMPI_COMM_WORLD_RANK=-1 OMPI_COMM_WORLD_SIZE=2", ["'-1'", "--share I/N"]),
        ("OMPI_COMM_WORLD_SIZE=4", ["OMPI_COMM_WORLD_RANK is not set", "unset the variable"]),
        ("PMI_RANK=3", ["PMI_SIZE is not set", "--share I/N"]),
        ("PMI_SIZE=3", ["PMI_RANK is not set", "MPICH"]),
        ("PMIX_RANK=1", ["PMIX_RANK is 1 and PMIX_SIZE is not set", "unset the variable"]),
        ("PMIX_SIZE=2", ["PMIX_RANK is not set", "--share I/N"]),
        // A shell of a job says nothing of the size either.
        ("PMIX_RANK=1 SLURM_JOB_ID=5 SLURM_NTASKS=4", ["PMIX_SIZE is not set", "--share none"]),
        (
            "JOB_COMPLETIONS=3",
            ["JOB_COMPLETIONS is 3 and JOB_COMPLETION_INDEX is not set", "unset the variable"],
        ),
        ("PMI_RANK=0 PMI_SIZE=99999", ["99999", "65536"]),
        (
            "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 PMI_RANK=0 PMI_SIZE=2",
            ["says share 2 of 4", "says share 1 of 2"],
        ),
        ("JOB_COMPLETION_INDEX=2", ["nothing says of how many", "TOKLOAD_COMPLETIONS"]),
        ("JOB_COMPLETION_INDEX=5 TOKLOAD_COMPLETIONS=5", ["JOB_COMPLETION_INDEX is 5", "counted from 0"]),
    ] {
        let error = seen(variables).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{variables}: {error}");
    }
}

#[test]
fn a_job_has_a_name_and_its_processes_one_seed() {
    let job = |variables: &str| seen(variables).unwrap().unwrap().job;
    let step = "SLURM_STEP_ID=3 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=81";
    assert_eq!(job(step).as_deref(), Some("slurm-81-3"));
    assert_eq!(job(&format!("{step} SLURM_RESTART_COUNT=2")).as_deref(), Some("slurm-81-3-restart-2"));
    assert_eq!(job(&format!("{step} TOKLOAD_JOB=mine")).as_deref(), Some("mine"));
    assert_eq!(job("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=7"), Some("7".to_owned()));
    assert_eq!(job("JOB_COMPLETION_INDEX=0 JOB_COMPLETIONS=2"), None);
    // srun with --mpi=pmi2.
    assert_eq!(job(&format!("{step} PMI_RANK=0 PMI_SIZE=2")).as_deref(), Some("slurm-81-3"));
    let seed = |variables: &str| seen(variables).unwrap().unwrap().seed();
    let other = step.replace("PROCID=0", "PROCID=1");
    assert_eq!(seed(step), seed(&other));
    assert_ne!(seed(step), seed(&step.replace("81", "82")));
    assert_eq!(seed("JOB_COMPLETION_INDEX=0 JOB_COMPLETIONS=2"), None);
}

#[test]
fn processes_of_one_host_have_cores_of_their_own() {
    let step = "SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_NTASKS=7 SLURM_LOCALID=1";
    let local = |more: &str| seen(&format!("{step} {more}")).unwrap().unwrap().local;
    assert_eq!(local("SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=2(x3),1"), Some((1, 2)));
    assert_eq!(local("SLURM_NODEID=1 SLURM_TASKS_PER_NODE=4,3"), Some((1, 3)));
    assert_eq!(local("SLURM_NODEID=9 SLURM_TASKS_PER_NODE=4,3"), None);
    assert_eq!(local("SLURM_NODEID=0 SLURM_TASKS_PER_NODE=many"), None);
    let rank = Rank { share: Share { index: 2, of: 3 }, by: String::new(), job: None, local: Some((1, 3)) };
    assert_eq!(rank.cores(&[0, 1, 2, 3, 4, 5, 6, 7], Some(8)), Some(vec![1, 4, 7]));
    // More processes than cores: none is its own.
    assert_eq!(rank.cores(&[0], Some(1)), Some(vec![]));
    // Bound by the launcher, or alone.
    assert_eq!(rank.cores(&[2, 3], Some(8)), None);
    assert_eq!(Rank { local: Some((0, 1)), ..rank }.cores(&[0, 1], Some(2)), None);
}

#[test]
fn what_one_process_does_is_refused_to_several() {
    let env = |name: &str| match name {
        "PMI_RANK" => Some("1".to_owned()),
        "PMI_SIZE" => Some("2".to_owned()),
        _ => None,
    };
    let error = alone("quick", None, &env).unwrap_err().to_string();
    assert!(error.contains("process 2 of 2") && error.contains("srun -n 1"), "{error}");
    assert!(alone("quick", Some("none"), &env).is_ok() && alone("quick", None, &|_| None).is_ok());
}
