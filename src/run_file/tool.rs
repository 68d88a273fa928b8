//! Whose result a file is, told from what stands in it.

use serde_json::Value;

/// A program that writes results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// aiperf: `profile_export_aiperf.json`, `profile_export.jsonl`.
    Aiperf,
    /// llama.cpp's `llama-batched-bench`: its table, and the lines of `--output-format jsonl`.
    BatchedBench,
    /// Whoever writes a log of HdrHistogram's, format 1.2 or 1.3: lines of compressed histograms.
    HdrLog,
    /// Whoever prints HdrHistogram's table of percentiles: wrk2, HdrHistogram's own tools.
    Hgrm,
    /// llama.cpp's `llama-bench`, with `-o jsonl`, `json`, `csv` or `md`.
    LlamaBench,
    /// vLLM's `bench serve`: the JSON of `--save-result`, lines of it with `--append-result`.
    Vllm,
}

impl Tool {
    /// Every tool, by name.
    pub const ALL: [Tool; 6] =
        [Tool::Aiperf, Tool::HdrLog, Tool::Hgrm, Tool::BatchedBench, Tool::LlamaBench, Tool::Vllm];

    /// Its name in options and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tool::Aiperf => "aiperf",
            Tool::BatchedBench => "llama-batched-bench",
            Tool::HdrLog => "hdrlog",
            Tool::Hgrm => "hgrm",
            Tool::LlamaBench => "llama-bench",
            Tool::Vllm => "vllm",
        }
    }

    /// Its file in words.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Tool::Aiperf => "a result of aiperf",
            Tool::BatchedBench => "a result of llama-batched-bench",
            Tool::HdrLog => "a log of HdrHistogram's",
            Tool::Hgrm => "a table of percentiles by HdrHistogram",
            Tool::LlamaBench => "a result of llama-bench",
            Tool::Vllm => "a result of vLLM's client",
        }
    }

    /// Told from the first JSON value of a file.
    #[must_use]
    pub fn of_value(first: &Value) -> Option<Tool> {
        let has = |keys: &[&str]| keys.iter().all(|key| first.get(key).is_some());
        if has(&["aiperf_version"]) || has(&["metadata", "metrics"]) || Tool::is_aiperf_statistics(first) {
            return Some(Tool::Aiperf);
        }
        if has(&["n_prompt", "n_gen", "avg_ts"]) {
            return Some(Tool::LlamaBench);
        }
        if has(&["pl", "speed_pp", "speed_tg"]) {
            return Some(Tool::BatchedBench);
        }
        has(&["completed", "request_throughput"]).then_some(Tool::Vllm)
    }

    /// Told from a text that is no JSON: by the first line that only one of them writes.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Tool> {
        text.lines().take(LINES_LOOKED_AT).find_map(Tool::of_line)
    }

    /// Whether it is aiperf's file of statistics; in older versions the metrics stand in a block of their own.
    #[must_use]
    pub fn is_aiperf_statistics(value: &Value) -> bool {
        let block = |name: &str| value.get(name).or_else(|| value.get("records")?.get(name));
        let found = |name: &str| block(name).is_some_and(|block| block.get("avg").is_some());
        ["request_latency", "request_count", "request_throughput", "time_to_first_token"]
            .into_iter()
            .any(found)
    }

    fn of_line(line: &str) -> Option<Tool> {
        let line = line.trim();
        let has = |words: &[&str]| words.iter().all(|word| line.contains(word));
        if line.starts_with("#[Histogram log format") || has(&["StartTimestamp", "Interval_Length"]) {
            return Some(Tool::HdrLog);
        }
        if has(&["Value", "Percentile", "TotalCount"]) {
            return Some(Tool::Hgrm);
        }
        if line.starts_with('|') {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            if ["PP", "TG", "B", "N_KV"].iter().all(|name| cells.contains(name)) {
                return Some(Tool::BatchedBench);
            }
            return (cells.contains(&"test") && cells.contains(&"t/s")).then_some(Tool::LlamaBench);
        }
        has(&["build_commit", "n_prompt", "avg_ts"]).then_some(Tool::LlamaBench)
    }
}

/// What was copied from a terminal has some lines of a log before the table.
const LINES_LOOKED_AT: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_what_only_they_have() {
        let value = |text: &str| Tool::of_value(&serde_json::from_str(text).unwrap());
        for (text, tool) in [
            ("{\"metadata\": {}, \"metrics\": {}}", Some(Tool::Aiperf)),
            ("{\"records\": {\"request_latency\": {\"avg\": 1}}}", Some(Tool::Aiperf)),
            ("{\"request_throughput\": 2, \"completed\": 1}", Some(Tool::Vllm)),
            ("{\"n_prompt\": 1, \"n_gen\": 0, \"avg_ts\": 2}", Some(Tool::LlamaBench)),
            ("{\"pp\": 1, \"tg\": 0, \"pl\": 2, \"speed_pp\": 1, \"speed_tg\": 1}", Some(Tool::BatchedBench)),
            ("{\"n_prompt\": 1}", None),
            ("[]", None),
        ] {
            assert_eq!(value(text), tool, "{text}");
        }
        for (text, tool) in [
            ("#[Histogram log format version 1.3]\n", Some(Tool::HdrLog)),
            ("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\"", Some(Tool::HdrLog)),
            ("noise\n\n  Value   Percentile TotalCount 1/(1-Percentile)\n", Some(Tool::Hgrm)),
            ("load: ok\n|  PP | TG | B | N_KV | T_PP s |\n", Some(Tool::BatchedBench)),
            ("| model | size | test | t/s |\n", Some(Tool::LlamaBench)),
            ("build_commit,n_prompt,n_gen,avg_ts\n", Some(Tool::LlamaBench)),
            ("| test | result |\n", None),
            ("hello", None),
        ] {
            assert_eq!(Tool::of_text(text), tool, "{text}");
        }
    }

    #[test]
    fn each_is_named_once_and_in_order() {
        assert!(Tool::ALL.is_sorted_by(|a, b| a.name() < b.name()));
    }
}
