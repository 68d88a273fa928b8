//! Names that SGLang's `bench_serving` alone has.

use super::Action::{Accept, Convert, Refuse};
use super::Takes::Nothing;
use super::{Action, Converted, IMAGES, IMAGES_REMEDY, LATER, PROFILER};

pub(super) static TABLE: &[(&[&str], Action)] = &[
    // Cached tokens are reported wherever the server counts them.
    (&["--cache-report"], Accept(Nothing)),
    (&["--mooncake-slowdown-factor"], Convert(slowdown)),
    (&["--mooncake-workload"], Refuse("would download a trace", "give the file by --trace FILE")),
    (&["--gsp-ordered"], Refuse(LATER, "leave it out: each request draws its prefix by the seed")),
    (
        &["--flush-cache-timeout"],
        Refuse(
            "waits for a server to become idle",
            "leave it out: before each level nothing of ours is in flight, and a failed flush is said",
        ),
    ),
    (
        &["--logprob-start-len", "--return-logprob", "--token-ids-logprob", "--top-logprobs-num"],
        Refuse(
            "is a field of the request",
            r#"give it by --extra-body, as in '{"return_logprob":true}' for /generate"#,
        ),
    ),
    (
        &["--return-routed-experts"],
        Refuse(
            "is a field of the request",
            r#"give it by --extra-body, as in '{"return_routed_experts":true}' for /generate"#,
        ),
    ),
    (
        &["--print-requests"],
        Refuse(
            "prints while it measures",
            "use --dry-run to see requests, --save-detailed to keep what became of them",
        ),
    ),
    (&["--plot-throughput"], Refuse(LATER, "draw the series of the saved run, levels[].series")),
    (
        &["--fake-prefill", "--pd-separated"],
        Refuse(
            "is about a server whose prefill and decode are apart",
            "ask the router in front of both, which is one server to a client",
        ),
    ),
    (
        &[
            "--profile-activities",
            "--profile-by-stage",
            "--profile-decode-url",
            "--profile-num-steps",
            "--profile-output-dir",
            "--profile-prefill-url",
            "--profile-prefix",
            "--profile-stages",
            "--profile-start-step",
            "--profile-steps",
        ],
        Refuse("is about the server's profiler", PROFILER),
    ),
    (
        &["--image-content", "--image-count", "--image-resolution", "--random-image-count"],
        Refuse(IMAGES, IMAGES_REMEDY),
    ),
    (
        &["--lora-request-distribution", "--lora-zipf-alpha"],
        Refuse(
            "weighs adapters by a law of its own",
            "give each as --model NAME with a weight of --model-weights",
        ),
    ),
    (&["--dataset-offset"], Refuse(LATER, "give a file that begins where you want, or another --seed")),
];

/// How much slower than recorded is the inverse of how much faster.
fn slowdown(value: &str) -> Converted {
    match value.parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor.is_finite() => {
            Ok(vec![("--trace-speedup", (1.0 / factor).to_string())])
        }
        _ => Err((format!("'{value}' is no factor"), "give a number above 0, 2 for half as fast")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slowdown_is_an_inverse_speedup() {
        assert_eq!(slowdown("2.0"), Ok(vec![("--trace-speedup", "0.5".to_owned())]));
        assert_eq!(slowdown("0.25"), Ok(vec![("--trace-speedup", "4".to_owned())]));
        for wrong in ["0", "-1", "inf", "fast"] {
            assert!(slowdown(wrong).is_err(), "{wrong}");
        }
    }
}
