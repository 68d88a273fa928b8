//! How many requests a server works on at once, in words, and what to turn on a server of its kind.

use crate::report::format;
use crate::strategy::{Flow, Found};

/// What the loads of a search tell of a server's slots; `None` where they do not.
///
/// `kind` is the server's as [`ServerFacts::kind`](crate::load::probe::ServerFacts::kind) names it.
pub(super) fn sentence(found: &Found, kind: Option<&str>) -> Option<String> {
    let slots = found.slots?.slots;
    let mut text = match slots {
        1 => "the server works on about 1 request at once, and whoever comes meanwhile waits for its end"
            .to_owned(),
        slots => format!(
            "the server works on about {slots} requests at once, and whoever comes later waits for one to end"
        ),
    };
    text += &format!(". To have more places, {}", remedy(kind));
    if let Some(Growth { from, to, users, throughput }) = growth(found, slots) {
        let means = if throughput >= users.sqrt() {
            "so the machine should bear more of them"
        } else {
            "so more of them would be served at once, but each more slowly"
        };
        text += &format!(
            "; from {from} to {to} users throughput grew {} times, {means}",
            format::rate(throughput)
        );
    }
    Some(text)
}

/// What the number of slots is called on a server of this kind.
fn remedy(kind: Option<&str>) -> &'static str {
    match kind {
        Some("Ollama") => "raise OLLAMA_NUM_PARALLEL (each takes memory for a context)",
        Some("llama.cpp") => "raise --parallel of llama-server (and --ctx-size, which they share)",
        Some("vLLM") => "raise --max-num-seqs",
        Some("SGLang") => "raise --max-running-requests",
        Some("LM Studio") => {
            "raise the number of parallel predictions in the settings that the model is loaded with"
        }
        Some("tokload mock") => "raise --slots of tokload mock-server",
        _ => "raise the number of sequences that the server runs at once (its slots, or batch size)",
    }
}

/// What more users brought while there was a place for each of them.
struct Growth {
    from: u32,
    to: u32,
    /// Times the users, above 1.
    users: f64,
    /// Times the throughput.
    throughput: f64,
}

fn growth(found: &Found, slots: u32) -> Option<Growth> {
    let with_place = |(users, _): &(u32, Flow)| *users <= slots;
    let loads = found.trials.iter().filter_map(|trial| Some((trial.load as u32, trial.flow?)));
    let loads: Vec<(u32, Flow)> = loads.filter(with_place).collect();
    let (from, few) = loads.iter().min_by_key(|(users, _)| *users)?;
    let (to, many) = loads.iter().max_by_key(|(users, _)| *users)?;
    let users = f64::from(*to) / f64::from(*from);
    // Throughput is users over E2E.
    (to > from).then(|| Growth { from: *from, to: *to, users, throughput: users * few.e2e_ms / many.e2e_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::{Answer, Ending, Medians, Slots, Stage, Trial};

    /// A search that tried these users, whose answers took so long.
    fn found(slots: Option<u32>, loads: &[(f64, f64)]) -> Found {
        let trial = |(load, e2e_ms): &(f64, f64)| {
            let flow = Flow { requests: 30, ttft_ms: 10.0, e2e_ms: *e2e_ms, under_way: 1 };
            let (medians, limits) = (Medians::default(), Vec::new());
            Trial {
                load: *load,
                stage: Stage::Bracket,
                judged: None,
                medians,
                limits,
                flow: Some(flow),
                too_long: false,
            }
        };
        let answer = Answer {
            undecided: Vec::new(),
            low: Some(4.0),
            high: Some(8.0),
            ending: Ending::Found,
            confidence: 0.99,
            decided: true,
            recovered: None,
            non_monotone: Vec::new(),
            requests: 100,
        };
        let slots = slots.map(|slots| Slots { slots, off: 0.0 });
        Found {
            answer,
            binding: None,
            slots,
            earlier: 0,
            judged_again: false,
            trials: loads.iter().map(trial).collect(),
        }
    }

    #[test]
    fn each_kind_of_server_has_its_own_switch() {
        let said = |kind: &str| sentence(&found(Some(4), &[(1.0, 100.0)]), Some(kind)).unwrap();
        for (kind, switch) in [
            ("Ollama", "OLLAMA_NUM_PARALLEL"),
            ("llama.cpp", "--parallel"),
            ("vLLM", "--max-num-seqs"),
            ("SGLang", "--max-running-requests"),
            ("tokload mock", "--slots"),
            ("unknown server", "number of sequences"),
        ] {
            let said = said(kind);
            assert!(said.starts_with("the server works on about 4 requests at once"), "{said}");
            assert!(said.contains(switch) && !said.contains("throughput"), "{said}");
        }
        let one = sentence(&found(Some(1), &[(1.0, 100.0)]), None).unwrap();
        assert!(one.starts_with("the server works on about 1 request at once"), "{one}");
        assert_eq!(sentence(&found(None, &[(1.0, 100.0)]), Some("vLLM")), None);
    }

    #[test]
    fn whether_more_places_would_help_is_told_by_what_the_first_brought() {
        let with =
            |e2e_ms| sentence(&found(Some(4), &[(1.0, 100.0), (4.0, e2e_ms), (8.0, 900.0)]), None).unwrap();
        assert!(
            with(130.0)
                .contains("from 1 to 4 users throughput grew 3.08 times, so the machine should bear more")
        );
        assert!(
            with(250.0).contains("throughput grew 1.60 times") && with(250.0).contains("each more slowly")
        );
    }
}
