//! The integration tests: one binary, one module per subject.

mod aggregates;
mod api_captures;
mod args;
mod captures;
mod cases;
mod cli;
mod corpus;
mod explain;
mod faults;
mod fit_run;
mod goldens;
mod goldens_histogram;
mod goldens_model;
mod java_random;
mod layers;
mod lifecycle;
mod load;
mod mock;
mod mock_dialects;
mod model_fit;
mod plan;
mod plan_lengths;
mod prompt_mix;

mod report;
mod rig;
mod run_file;
mod schedule;
mod simulate;
mod simulate_args;
mod wire_split;
