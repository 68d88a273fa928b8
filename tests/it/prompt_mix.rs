//! The golden PromptMix by the commands of the README: what prompts share, and what a prefix cache makes of it.
//!
//! Where a row draws lengths, the golden draws them from java.util.Random and a command draws them from its seed: the
//! rows themselves, with the golden's own lengths, are `goldens_model`'s. Here each request is held to the formula
//! exactly, and the row to the golden's distribution.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tokload::api::request::Template;
use tokload::cli::args::{Asked, Command, parse};
use tokload::cli::simulate::{self, Ordered, SIMULATED};
use tokload::engine::Engine;
use tokload::load::probe::ask_of;
use tokload::load::{Route, Spool, SpoolFiles, Target};
use tokload::metrics::{Flags, Phase, Record};
use tokload::mock::{Paper, Settings};
use tokload::sim::{Setup, SimEngine};
use tokload::sys::signals::Interrupts;
use tokload::time::Stamp;
use tokload::workload::reuse::{Reuse, Sent};
use tokload::workload::{Content, Item, Mix};

use crate::goldens::{assert_close, values};
use crate::goldens_model::number;

#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn ordered(line: &str) -> Ordered {
    let Asked::Command { command: Command::Simulate(words), .. } =
        parse(line.split_whitespace().skip(1).map(Into::into))
            .unwrap_or_else(|error| panic!("{line}: {error}"))
    else {
        panic!("{line} simulates nothing");
    };
    simulate::order(&words, None).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The measured requests of the only level of the simulation that `line` orders, by their index.
fn records(line: &str, change: impl FnOnce(&mut Settings)) -> (Ordered, Vec<Record>) {
    let (ordered, mut levels) = levels(line, change);
    assert_eq!(levels.len(), 1);
    (ordered, levels.remove(0))
}

/// The measured requests of each level of the simulation that `line` orders, by their index.
pub(crate) fn levels(line: &str, change: impl FnOnce(&mut Settings)) -> (Ordered, Vec<Vec<Record>>) {
    let ordered = ordered(line);
    let plan = &ordered.order.plan;
    let options = plan.workload.body_options();
    let target = Target {
        routes: vec![Route::nowhere("sim", plan.target.request_path(), Vec::new()).unwrap()],
        templates: vec![Template::new(plan.target.dialect, SIMULATED, plan.target.stream, &options)],
        mix: Mix::equal(1),
        routing: tokload::workload::Routing::in_turn(1),
        content: Content::new(plan),
    };
    let mut settings = Settings {
        model: SIMULATED.to_owned(),
        max_model_len: u32::MAX,
        serving: ordered.model.clone(),
        ..Settings::default()
    };
    change(&mut settings);
    let tape = Tape::default();
    let mut engine = SimEngine::new(Setup {
        plan: Arc::new(plan.clone()),
        target: Arc::new(target),
        ask: ask_of(plan),
        servers: vec![Paper::new(settings, Stamp::ZERO).unwrap()],
        spool: Some(Spool::start(SpoolFiles { records: Box::new(tape.clone()), chunks: None }).unwrap()),
        live: None,
        interrupts: Interrupts::default(),
    });
    let levels = plan.levels.iter().enumerate().map(|(ordinal, level)| {
        engine.run_level(ordinal, level, &mut |_| {}).unwrap();
        // All that the level has measured was written before it was over.
        let bytes = std::mem::take(&mut *tape.0.lock().unwrap());
        let all =
            bytes.chunks_exact(Record::BYTES).map(|one| Record::decode(one.try_into().unwrap()).unwrap());
        let mut measured: Vec<Record> = all.filter(|record| record.phase == Phase::Measured).collect();
        measured.sort_by_key(|record| record.index);
        measured
    });
    let levels = levels.collect();
    engine.finish().unwrap();
    (ordered, levels)
}

/// The command in the README's row about `question`.
pub(crate) fn documented(question: &str) -> String {
    let readme = include_str!("../../README.md");
    let line = readme.lines().find(|line| line.starts_with("| ") && line.contains(question));
    let line = line.unwrap_or_else(|| panic!("the README has no row on {question}"));
    line.split('`').nth(1).unwrap().to_owned()
}

/// How much later than it is sent a simulated request arrives.
pub(crate) const ON_THE_WAY_NS: u64 = 1;

/// TTFT of a prompt with so many tokens to compute: 25 ms and a quarter for each token.
fn ttft_ns(computed: u32) -> u64 {
    25_000_000 + u64::from(computed) * 250_000 + ON_THE_WAY_NS
}

struct Row {
    prompt: u64,
    computed: u64,
    ttft_ms: Vec<f64>,
}

/// The row that the golden would print, each request having been held to the formula.
fn row(records: &[Record]) -> Row {
    assert_eq!(records.len(), 1000);
    let mut row = Row { prompt: 0, computed: 0, ttft_ms: Vec::new() };
    for record in records {
        assert!(record.outcome.is_ok());
        let (prompt, cached) = (record.prompt_tokens.unwrap(), record.cached_tokens.get().unwrap());
        assert_eq!(record.ttft_ns(), Some(ttft_ns(prompt - cached)), "request {}", record.index);
        row.prompt += u64::from(prompt);
        row.computed += u64::from(prompt - cached);
        row.ttft_ms.push((record.ttft_ns().unwrap() - ON_THE_WAY_NS) as f64 / 1e6);
    }
    row.ttft_ms.sort_unstable_by(f64::total_cmp);
    row
}

impl Row {
    fn mean(&self) -> f64 {
        self.ttft_ms.iter().sum::<f64>() / self.ttft_ms.len() as f64
    }

    fn hit_pct(&self) -> f64 {
        (self.prompt - self.computed) as f64 * 100.0 / self.prompt as f64
    }

    #[track_caller]
    fn assert_is(&self, golden: &serde_json::Value) {
        assert_eq!(self.prompt, golden["prompt_tokens"].as_u64().unwrap());
        assert_eq!(self.computed, golden["computed_tokens"].as_u64().unwrap());
        assert_close(self.hit_pct(), number(golden, "cache_hit_pct"));
        assert_close(self.mean(), number(golden, "ttft_mean"));
        assert_close(self.ttft_ms[499], number(golden, "ttft_p50"));
        assert_close(self.ttft_ms[989], number(golden, "ttft_p99"));
    }

    /// Each is a sample of 1000 of the same distribution: their means differ by at most four standard errors of a
    /// difference, and between the bounds of a rank that this many draws leave stands the golden's percentile.
    #[track_caller]
    fn assert_like(&self, golden: &serde_json::Value) {
        let n = self.ttft_ms.len() as f64;
        let variance = self.ttft_ms.iter().map(|ttft| (ttft - self.mean()).powi(2)).sum::<f64>() / n;
        let difference = (self.mean() - number(golden, "ttft_mean")).abs();
        assert!(difference <= 4.0 * (2.0 * variance / n).sqrt(), "means differ by {difference} ms");
        // A rank of a sample has the standard error sqrt(n p (1 - p)); of the difference of two, sqrt 2 times that.
        for (key, rank, p) in [("ttft_p50", 499.0, 0.5f64), ("ttft_p99", 989.0, 0.99)] {
            let error = 4.0 * (2.0 * n * p * (1.0 - p)).sqrt();
            let at = |rank: f64| self.ttft_ms[rank.clamp(0.0, n - 1.0) as usize];
            let (low, high) = (at(rank - error), at(rank + error));
            assert!((low..=high).contains(&number(golden, key)), "{key} is not from {low} to {high} ms");
        }
    }
}

#[test]
fn the_same_prompt_is_computed_once() {
    let (_, records) = records(&documented("the same 1024-token prompt"), |_| {});
    row(&records).assert_is(&values("PromptMix")[0]);
}

#[test]
fn prompts_of_their_own_are_all_computed() {
    let (_, records) = records(&documented("random 1024-token prompts"), |_| {});
    row(&records).assert_is(&values("PromptMix")[1]);
}

#[test]
fn lognormal_lengths_are_as_the_golden_draws_them() {
    let (ordered, records) = records(&documented("lognormal lengths, median 600"), |_| {});
    let golden = &values("PromptMix")[2];
    let row = row(&records);
    assert_eq!(
        (row.computed, golden["computed_tokens"].as_u64()),
        (row.prompt, golden["prompt_tokens"].as_u64())
    );
    // A prompt has exactly the tokens that its length says.
    let content = Content::new(&ordered.order.plan);
    let words = |record: &Record| content.prompt_words(item(&ordered, record.index));
    assert!(records.iter().all(|record| record.prompt_tokens == Some(words(record))));
    row.assert_like(golden);
}

#[test]
fn a_shared_beginning_is_computed_once_and_the_rest_always() {
    let (ordered, records) = records(&documented("1500 shared + lognormal 200"), |_| {});
    let golden = &values("PromptMix")[3];
    let content = Content::new(&ordered.order.plan);
    for record in &records {
        let words = content.prompt_words(item(&ordered, record.index));
        // Whole blocks of 16 of the shared 1500 tokens, from the second request on: the warm-up shares nothing.
        let cached = if record.index == 0 { 0 } else { 1500 / 16 * 16 };
        assert_eq!((record.prompt_tokens, record.cached_tokens.get()), (Some(words), Some(cached)));
    }
    let row = row(&records);
    row.assert_like(golden);
    let gap = (row.hit_pct() - number(golden, "cache_hit_pct")).abs();
    assert!(gap < 1.0, "the hit rate is off by {gap} points");
}

fn item(ordered: &Ordered, index: u64) -> Item {
    Item { seed: ordered.order.plan.level_seed(0), phase: Phase::Measured, index }
}

#[test]
fn each_beginning_of_a_pool_is_computed_once() {
    let line = "tokload simulate --prefix-cache --num-prefix-prompts 4 --prefix-prompt-length 160 \
                --random-input-len 24 --random-output-len 2 --num-prompts 200 --max-concurrency 1";
    let (_, records) = records(line, |_| {});
    let cold = records.iter().filter(|record| record.cached_tokens.get() == Some(0)).count();
    let warm = records.iter().filter(|record| record.cached_tokens.get() == Some(160)).count();
    assert_eq!((cold, warm), (4, 196));
    assert!(records.iter().all(|record| record.prompt_tokens == Some(184)));
}

/// Every prompt has 400 tokens, of which the ones that begin with the prefix find 320, twenty whole blocks.
#[test]
fn a_hit_fraction_makes_two_populations_each_with_its_ttft() {
    let line = "tokload simulate --prefix-cache --base-ms 25 --per-sequence-ms 0 --per-prefill-token-ms 0.25 \
                --random-prefix-len 320 --random-input-len 80 --prefix-hit-fraction 0.5 --random-output-len 2 \
                --num-prompts 600 --max-concurrency 1";
    let (ordered, records) = records(line, |_| {});
    let (mut cold, mut warm) = (0_u64, 0_u64);
    for record in &records {
        let ttft = record.ttft_ns().unwrap();
        match record.cached_tokens.get() {
            Some(0) => {
                cold += 1;
                assert_eq!(ttft, ttft_ns(400));
            }
            Some(320) => {
                warm += 1;
                assert_eq!(ttft, ttft_ns(80));
            }
            other => panic!("{other:?} cached tokens"),
        }
    }
    // What the server found is what an unlimited cache finds of what was sent, and about what was asked for.
    let sent: Vec<Sent> = records.iter().map(|record| Sent { index: record.index, counts: true }).collect();
    let plan = &ordered.order.plan;
    let reuse = Reuse::of(&Content::new(plan), plan.level_seed(0), &sent).unwrap().unwrap();
    assert_eq!(reuse, Reuse { prompt_tokens: 600 * 400, found_tokens: warm * 320 });
    // 0.8 of a prompt each time: 0.625 of them, of a binomial.
    let error = 5.0 * 0.8 * (0.625_f64 * 0.375 / 600.0).sqrt();
    assert!((reuse.share() - 0.5).abs() < error, "{}", reuse.share());
    assert_eq!(cold + warm, 600);
}

#[test]
fn a_system_message_is_found_by_all_but_the_first() {
    let line = "tokload simulate --prefix-cache --shared-system-prompt-length 160 --random-input-len 24 \
                --random-output-len 2 --num-prompts 50 --max-concurrency 1 --backend";
    for backend in ["openai-chat", "messages", "responses"] {
        let (_, records) = records(&format!("{line} {backend}"), |_| {});
        for record in &records {
            let cached = if record.index == 0 { 0 } else { 160 };
            assert_eq!(
                (record.prompt_tokens, record.cached_tokens.get()),
                (Some(184), Some(cached)),
                "{backend}"
            );
        }
    }
}

#[test]
fn answers_are_held_to_the_length_that_each_asked_for() {
    let line =
        "tokload simulate --random-output-len uniform:min=10,max=90 --num-prompts 300 --max-concurrency 8";
    let off = |record: &&Record| record.flags.contains(Flags::LENGTH_OFF);
    let (ordered, whole) = records(line, |_| {});
    let content = Content::new(&ordered.order.plan);
    let wanted: Vec<u32> =
        whole.iter().map(|record| content.output_tokens(item(&ordered, record.index))).collect();
    assert!(whole.iter().zip(&wanted).all(|(record, wanted)| record.output_tokens == Some(*wanted)));
    assert_eq!(whole.iter().filter(off).count(), 0);

    // A model that ends after 50 tokens keeps what was asked of the shorter ones only.
    let (_, cut) = records(&format!("{line} --no-ignore-eos"), |settings| settings.eos_after = Some(50));
    for (record, wanted) in cut.iter().zip(&wanted) {
        assert_eq!(record.output_tokens, Some((*wanted).min(50)));
        assert_eq!(off(&record), *wanted > 50, "{wanted} asked");
    }
    assert!((100..200).contains(&cut.iter().filter(off).count()));
}
