//! What another tool printed of its levels: its own columns, as they stand in its table.

use super::{Cell, Column, Row, Table};
use crate::report::format;
use crate::run_file::{RunFile, Tool};

/// The table of an imported run; without rows where its tool prints none.
pub(super) fn table(run: &RunFile) -> Table {
    let Some(imported) = run.imported.as_ref().filter(|imported| !imported.printed.is_empty()) else {
        return Table::default();
    };
    let names: &[&str] =
        if imported.tool == Tool::BatchedBench.name() { &BATCHED_BENCH } else { &LLAMA_BENCH };
    let is_there = |name: &&&str| imported.printed.iter().any(|line| line.contains_key(**name));
    let names: Vec<&'static str> = names.iter().filter(is_there).copied().collect();
    let rows = run.levels.iter().zip(&imported.printed).map(|(level, line)| Row {
        label: level.label.clone(),
        cells: names
            .iter()
            .map(|name| match line.get(*name).filter(|text| !text.is_empty()) {
                Some(text) => Cell::Number(format::one_line(text, CELL_CHARS_MAX)),
                None => Cell::Absent,
            })
            .collect(),
        second: false,
    });
    let columns = names.iter().map(|name| Column { group: "", name }).collect();
    Table::of("as printed", columns, rows.collect())
}

const BATCHED_BENCH: [&str; 10] =
    ["PP", "TG", "B", "N_KV", "T_PP s", "S_PP t/s", "T_TG s", "S_TG t/s", "T s", "S t/s"];
/// Of these the tool prints the settings that were varied or are not its defaults.
const LLAMA_BENCH: [&str; 25] = [
    "model",
    "size",
    "params",
    "backend",
    "threads",
    "ngl",
    "n_batch",
    "n_ubatch",
    "type_k",
    "type_v",
    "fa",
    "sm",
    "main_gpu",
    "nkvo",
    "devices",
    "ts",
    "ot",
    "mmap",
    "embd",
    "nopo",
    "cpu_mask",
    "cpu_strict",
    "poll",
    "n_cpu_moe",
    "t/s",
];
const CELL_CHARS_MAX: usize = 40;
