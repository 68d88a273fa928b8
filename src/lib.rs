//! tokload: a load generator for LLM inference servers.
#![doc = include_str!("ARCHITECTURE.md")]
#![deny(unsafe_code)]
#![warn(missing_docs, unreachable_pub, missing_debug_implementations)]
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!(
    "tokload runs on Linux on x86-64 and aarch64 only: it needs epoll, timerfd and a counter register"
);

// Beneath everything: the operating system, and all unsafe code.
pub mod sys;

// Floor 0, ground.
pub mod rng;
pub mod time;

// Floor 1, instruments.
pub mod stats;
pub mod wire;

// Floor 2, domain.
pub mod api;
pub mod metrics;
pub mod plan;
pub mod workload;
// What a server does with it, without one.
pub mod model;

// Floor 3, lifecycle.
pub mod exchange;
pub mod run;
pub mod summary;
pub mod verdict;

pub mod strategy;

// Floor 4, engines.
pub mod engine;
pub mod pace;
// What runs on the runtime waits through `pace`.
pub mod load;
pub mod mock;
pub mod sim;

// Floor 5, artefacts.
pub mod run_file;
// Results of other tools as runs.
pub mod import;
// Runs against each other.
pub mod compare;
pub mod gate;

// Floor 6, views.
pub mod report;

// Floor 7, entry.
pub mod cli;
