//! Data sets that other tools know by a name, and what can be done for them here: nothing is downloaded.

use crate::plan::Error;
use crate::workload::trace::Format;

/// Why the data set `name` is not sent, and what to do instead.
pub(super) fn refusal(name: &str) -> Error {
    let known = name.replace('_', "-").to_ascii_lowercase();
    let found = KNOWN.iter().find(|(names, ..)| names.contains(&known.as_str()));
    let Some((_, wrong, remedy)) = found else {
        let names = Format::ALL.map(Format::name).join(", ");
        let remedy = format!(
            "give random, prefix_repetition, or the format of a file with --dataset-path FILE: {names}"
        );
        return Error::new("--dataset-name", format!("'{name}' is no data set that is known"), remedy);
    };
    Error::new("--dataset-name", format!("'{name}' {wrong}"), *remedy)
}

/// Names that are no format of a file, what they are, and what to do.
const KNOWN: &[(&[&str], &str, &str)] = &[
    (
        &["sonnet"],
        "asks for lines of a poem up to a length in tokens",
        "give --random-prefix-len 200 --random-input-len 350 --random-output-len 150 for prompts of those lengths, or its \
         lines by --dataset-name text --dataset-path sonnet.txt (benchmarks/sonnet.txt of vllm-project/vllm)",
    ),
    (
        &["hf"],
        "would download a data set",
        "get its file from huggingface.co/datasets and give it by --dataset-path FILE; JSON lines, JSON, CSV and Parquet (a feature) are \
         read",
    ),
    (
        &["spec-bench"],
        "is in a file with turns as a list of texts",
        "get question.jsonl of hemingkx/Spec-Bench and give it by --dataset-name multi-turn --dataset-path question.jsonl",
    ),
    (
        &["speed-bench"],
        "would download a data set",
        "get a file of nvidia/SPEED-Bench from huggingface.co/datasets and give it by --dataset-path FILE",
    ),
    (
        &["random-mm", "custom-mm", "custom-image", "custom-audio", "image", "mmmu", "mmvu", "visionarena"],
        "has images, video or sound, which are not sent yet",
        "use random with --random-input-len and --random-output-len for the texts alone",
    ),
    (
        &["random-rerank"],
        "is for rankings, which are not asked for yet",
        "use --backend openai-embeddings with --dataset-name random for texts of that length",
    ),
    (
        &["random-ids"],
        "sends token ids, and prompts are texts here",
        "use random: its words are one token each in most vocabularies",
    ),
    (
        &["generated-shared-prefix"],
        "has another name here",
        "use prefix_repetition with --num-prefix-prompts, --prefix-prompt-length, --random-input-len and \
         --random-output-len",
    ),
    (
        &["longbench", "longbench-v2"],
        "would download a data set",
        "get data.json of THUDM/LongBench-v2, write its texts as JSON lines with \"prompt\", and give them by \
         --dataset-path FILE",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of `--dataset-name` of `vllm bench serve` (vllm/benchmarks/datasets) and of SGLang's client.
    const OF_TOOLS: [&str; 20] = [
        "burstgpt",
        "custom",
        "custom_mm",
        "generated-shared-prefix",
        "hf",
        "image",
        "longbench_v2",
        "mmmu",
        "mooncake",
        "prefix_repetition",
        "random",
        "random-ids",
        "random-mm",
        "random-rerank",
        "sharegpt",
        "sonnet",
        "spec_bench",
        "speed_bench",
        "timed_trace",
        "text",
    ];

    #[test]
    fn every_name_of_the_tools_works_or_is_refused_by_what_it_is() {
        for name in OF_TOOLS {
            let works = Format::from_name(name).is_some() || ["random", "prefix_repetition"].contains(&name);
            let is_known = !refusal(name).wrong.contains("is no data set that is known");
            assert!(works != is_known, "{name}");
        }
        let error = refusal("nonsense");
        assert!(error.remedy.contains("sharegpt") && error.wrong.contains("'nonsense'"), "{error}");
    }
}
