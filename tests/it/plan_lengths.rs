//! How long prompts and answers are and what they share, by the options of every tool.

use tokload::cli::args::{Asked, Command, parse};
use tokload::cli::plan_from_args::{Surroundings, order};
use tokload::plan::{Distribution, Error, Lengths, Part, Plan, Prefix, Table, Workload};

/// Files that options name.
fn file(name: &str) -> std::io::Result<String> {
    let text = match name {
        "plain" => "# counted on Monday\n30\n10\n\n 20 # twice\n20\n",
        "weights.csv" => "\u{FEFF}length,count\r\n10,1\r\n200,2.5\r\n",
        "pairs" => "ISL OSL\n100 20\n300\t9 2\n100 20\n",
        "fraction" => "10\n1.5\n",
        "three" => "10 1 1\n",
        "negative" => "10 -1\n",
        "half" => "10 5\n20\n",
        "empty" => "# nothing\n",
        _ => return Err(std::io::ErrorKind::NotFound.into()),
    };
    Ok(text.to_owned())
}

fn parts(of: &[(u32, f64, f64)]) -> Table {
    let part = |&(length, stddev, weight): &(u32, f64, f64)| Part { length, stddev, weight };
    Table::new(of.iter().map(part))
}

fn ordered(line: &str, config: Option<&str>) -> Result<Workload, Error> {
    let Asked::Command { command: Command::Run(args), tool, .. } =
        parse(line.split_whitespace().map(Into::into))?
    else {
        panic!("not a run: {line}");
    };
    let config = config.map(|text| ("plan.toml", text));
    order(&args, &Surroundings { tool, fresh_seed: 1, config, env: &|_| None, read: &file })
        .map(|o| o.plan.workload)
}

#[track_caller]
fn workload(options: &str) -> Workload {
    ordered(&format!("run --url h:1 {options}"), None).unwrap_or_else(|error| panic!("{options}: {error}"))
}

#[track_caller]
fn lengths(options: &str) -> [Lengths; 2] {
    let Workload { input_words, output_tokens, .. } = workload(options);
    [input_words, output_tokens]
}

#[track_caller]
fn refused(options: &str) -> Error {
    ordered(&format!("run --url h:1 {options}"), None).expect_err(options)
}

fn uniform(min: u32, max: u32) -> Lengths {
    Lengths::Drawn(Distribution::Uniform { min, max })
}

fn normal(mean: f64, stddev: f64) -> Lengths {
    Lengths::Drawn(Distribution::Normal { mean, stddev, min: None, max: None })
}

#[test]
fn a_range_ratio_is_that_of_vllm() {
    // floor(len (1 - r)) to ceil(len (1 + r)), for prompts and answers; an answer has a token.
    assert_eq!(
        lengths("--isl 1024 --osl 128 --random-range-ratio 0.1"),
        [uniform(921, 1127), uniform(115, 141)]
    );
    assert_eq!(lengths("--isl 100 --osl 1 --random-range-ratio 0.5"), [uniform(50, 150), uniform(1, 2)]);
    assert_eq!(lengths("--random-range-ratio 0.0"), [128.into(), 64.into()]);
    let vllm = ordered("bench serve --model m --random-range-ratio 0.25", None).unwrap();
    assert_eq!((vllm.input_words, vllm.output_tokens), (uniform(768, 1280), uniform(96, 160)));
    // With a prefix a prompt may have no words of its own, as in vLLM; without, both refuse it.
    let options = "--isl 1 --random-range-ratio 0.5";
    assert_eq!(refused(options).subject, "--random-input-len");
    assert_eq!(workload(&format!("{options} --random-prefix-len 9")).input_words, uniform(0, 2));
    for ratio in ["1", "-0.1", "2"] {
        let error = refused(&format!("--random-range-ratio {ratio}"));
        assert_eq!(error.subject, "--random-range-ratio");
        assert!(error.remedy.contains("sglang"), "{error}");
    }
}

#[test]
fn deviations_are_those_of_aiperf() {
    assert_eq!(lengths("--isl 200 --isl-stddev 50"), [normal(200.0, 50.0), 64.into()]);
    assert_eq!(lengths("--osl 90 --output-tokens-stddev 5"), [128.into(), normal(90.0, 5.0)]);
    let aiperf = ordered("profile --url h:1 --synthetic-input-tokens-stddev 55", None).unwrap();
    assert_eq!(aiperf.input_words, normal(550.0, 55.0));
    assert_eq!(refused("--isl-stddev -1").subject, "--isl-stddev");
    assert_eq!(refused("--osl-stddev -1").subject, "--osl-stddev");
    assert_eq!(refused("--isl-stddev x").subject, "--isl-stddev");
}

#[test]
fn a_length_is_spread_once() {
    for options in [
        "--isl-stddev 5 --random-range-ratio 0.5",
        "--isl uniform:min=1,max=9 --isl-stddev 5",
        "--osl normal:mean=9,stddev=1 --random-range-ratio 0.5",
    ] {
        let error = refused(options);
        assert!(error.wrong.starts_with("spreads lengths that differ already ("), "{error}");
    }
}

#[test]
fn a_distribution_stands_where_a_number_does() {
    let [input, output] =
        lengths("--isl lognormal:median=600,sigma=1,min=8,max=8192 --osl uniform:min=1,max=9");
    let lognormal = Distribution::Lognormal { median: 600.0, sigma: 1.0, min: Some(8), max: Some(8192) };
    assert_eq!((input, output), (Lengths::Drawn(lognormal), uniform(1, 9)));
    assert_eq!(refused("--osl lognormal:median=0,sigma=1").subject, "--random-output-len");
    assert_eq!(refused("--isl gamma:mean=3").subject, "--random-input-len");
    // The median that this sigma makes of the mean is none either.
    assert!(refused("--isl lognormal:mean=20,sigma=100").wrong.starts_with("100 is no sigma"));
}

#[test]
fn lengths_are_those_counted_in_a_file() {
    let [input, output] = lengths("--isl empirical:plain --osl empirical:weights.csv");
    let empirical = |of: &[(u32, f64, f64)]| Lengths::Drawn(Distribution::Empirical(parts(of)));
    assert_eq!(input, empirical(&[(10, 0.0, 1.0), (20, 0.0, 2.0), (30, 0.0, 1.0)]));
    assert_eq!(output, empirical(&[(10, 0.0, 1.0), (200, 0.0, 2.5)]));
    for (name, wrong) in [
        ("fraction", "fraction, line 2: '1.5' is not a whole number"),
        ("three", "three, line 1: is more than a length, or a length and its weight"),
        ("negative", "negative, line 1: '-1' is no weight"),
        ("empty", "a table of 0 lengths"),
        ("nowhere", "nowhere: entity not found"),
    ] {
        let error = refused(&format!("--osl empirical:{name}"));
        assert_eq!((error.subject.as_str(), error.wrong.as_str()), ("--random-output-len", wrong));
    }
    assert!(
        refused("--isl empirical:plain --isl-stddev 5")
            .wrong
            .contains("differ already (empirical, 3 lengths")
    );
}

#[test]
fn pairs_are_those_of_aiperf() {
    let plain = [parts(&[(256, 0.0, 60.0), (512, 0.0, 40.0)]), parts(&[(128, 0.0, 60.0), (256, 0.0, 40.0)])];
    let spread =
        [parts(&[(256, 10.0, 60.0), (512, 0.0, 40.0)]), parts(&[(128, 0.5, 60.0), (256, 0.0, 40.0)])];
    let paired =
        |tables: &[Table; 2]| tables.clone().map(|table| Lengths::Drawn(Distribution::Paired(table)));
    for (text, tables) in [
        ("256,128:60;512,256:40", &plain),
        ("[(256,128):60,(512,256):40]", &plain),
        (r#"{"pairs":[{"isl":256,"osl":128,"prob":60},{"isl":512,"osl":256,"prob":40}]}"#, &plain),
        ("256|10,128|.5:60;512,256:40;", &spread),
        ("[(256|10,128|0.5):60,(512,256):40]", &spread),
        (
            r#"{"pairs":[{"isl":256,"isl_stddev":10,"osl":128,"osl_stddev":0.5,"prob":60},{"isl":512,"osl":256,"prob":40}]}"#,
            &spread,
        ),
    ] {
        for option in ["--sequence-distribution", "--seq-dist", "--sequence_distribution"] {
            assert_eq!(lengths(&format!("{option} {text}")), paired(tables), "{text}");
        }
    }
    let of_file = [parts(&[(100, 0.0, 2.0), (300, 0.0, 2.0)]), parts(&[(20, 0.0, 2.0), (9, 0.0, 2.0)])];
    assert_eq!(lengths("--seq-dist empirical:pairs"), paired(&of_file));
    for (text, wrong) in [
        ("256,128:60;512,256:30", "the shares of its pairs are 90 % together"),
        ("256,128:.6;512,256:.4", "the shares of its pairs are 1 % together"),
        ("256,128", "'256,128' is no pair of lengths"),
        ("256:100", "'256:100' is no pair of lengths"),
        ("256,128:-1;1,1:101", "'256,128:-1' is no pair of lengths"),
        ("256|nan,128:100", "'256|nan,128:100' is no pair of lengths"),
        ("", "names no pair of lengths"),
        ("[x(256,128):100]", "'x' is no pair of lengths"),
        ("empirical:half", "half, line 2: a length of answers is missing"),
    ] {
        let line = format!("run --url h:1 --sequence-distribution={text}");
        let error = ordered(&line, None).expect_err(text);
        assert_eq!((error.subject.as_str(), error.wrong.as_str()), ("--sequence-distribution", wrong));
    }
    assert!(refused(r#"--seq-dist {"pairs":[{"isl":1,"prob":100}]}"#).wrong.contains("`osl`"));
    assert_eq!(refused("--seq-dist 0,1:100").subject, "--random-input-len");
    assert_eq!(refused("--seq-dist 1,0:100").subject, "--random-output-len");
    assert_eq!(refused("--seq-dist 1,1:100 --isl 5").subject, "--random-input-len");
    assert_eq!(refused("--isl-osl-pairs 1/1").subject, "--isl-osl-pairs");
}

#[test]
fn tables_and_pairs_come_back_from_a_plan() {
    for options in [
        "--isl empirical:weights.csv --osl gamma:mean=90,cv=0.5,max=400",
        "--isl zipf:exponent=1.2,max=4096 --osl empirical:plain",
        "--seq-dist 256|10,128:60;512,256:40",
    ] {
        let whole = workload(options);
        let mut plan = Plan::new(5);
        plan.workload = whole.clone();
        let text = plan.to_toml();
        assert_eq!(Plan::from_toml(&text, 0).unwrap().workload, whole, "{text}");
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    }
    let file = |text: &str| ordered("run --url h:1", Some(text)).expect_err(text);
    let half = "[workload]\ninput_words = { distribution = \"paired\", lengths = [1, 2] }\n";
    assert_eq!(file(half).wrong, "only one of the two lengths is of pairs");
    let other = format!(
        "{half}output_tokens = {{ distribution = \"paired\", lengths = [1, 2], weights = [1, 2] }}\n"
    );
    assert!(file(&other).wrong.contains("they are no pairs"));
    let nothing =
        "[workload]\ninput_words = { distribution = \"empirical\", lengths = [1], weights = [0] }\n";
    assert_eq!(file(nothing).wrong, "the weights of the lengths are 0 together");
    let typo = "[workload]\ninput_words = { distribution = \"empirical\", length = [1] }\n";
    assert!(file(typo).to_string().contains("did you mean `lengths`?"), "{}", file(typo));
    for (lengths, wrong) in [
        ("{ distribution = \"gamma\", mean = 0.0, shape = 1.0 }", "0 is no mean of lengths"),
        ("{ distribution = \"gamma\", mean = 9.0, shape = -1.0 }", "-1 is no shape of lengths"),
        ("{ distribution = \"zipf\", exponent = 11.0, max = 9 }", "11 is no exponent of lengths"),
        ("{ distribution = \"zipf\", exponent = 1.0, max = 9, min = 10 }", "no length is from 10 to 9"),
        ("{ distribution = \"empirical\", lengths = [5], stddevs = [-1.0] }", "-1 is no standard deviation"),
    ] {
        assert_eq!(file(&format!("[workload]\ninput_words = {lengths}\n")).wrong, wrong);
    }
}

#[test]
fn prefixes_are_one_for_all_or_a_pool() {
    let prefix = |options: &str| workload(options).prefix;
    assert_eq!(prefix(""), None);
    assert_eq!(prefix("--random-prefix-len 1500"), Some(Prefix::new(1500, 1)));
    let pool = Some(Prefix::new(300, 7));
    assert_eq!(prefix("--num-prefix-prompts 7 --prefix-prompt-length 300"), pool);
    assert_eq!(prefix("--gsp-num-groups 7 --gsp-system-prompt-len 300"), pool);
    // The other tools' way to say none.
    for none in
        ["--random-prefix-len 0", "--num-prefix-prompts 0", "--num-prefix-prompts 0 --prefix-prompt-length 0"]
    {
        assert_eq!(prefix(none), None, "{none}");
    }
    let error = refused("--num-prefix-prompts 7");
    assert_eq!(
        (error.subject.as_str(), error.remedy.as_str()),
        ("--num-prefix-prompts", "give --prefix-prompt-length, too")
    );
    assert_eq!(refused("--prefix-prompt-length 7").subject, "--prefix-prompt-length");
    assert_eq!(refused("--random-prefix-len 7 --num-prefix-prompts 2").subject, "--random-prefix-len");
    assert_eq!(refused("--random-input-len 0").subject, "--random-input-len");
    assert_eq!(workload("--random-prefix-len 7 --isl 0").input_words, 0.into());
}

#[test]
fn prefix_repetition_has_vllms_numbers_unless_said() {
    let of = |options: &str| {
        let w = ordered(&format!("bench serve --dataset-name prefix_repetition {options}"), None).unwrap();
        (w.input_words, w.output_tokens, w.prefix)
    };
    assert_eq!(of(""), (256.into(), 128.into(), Some(Prefix::new(256, 10))));
    let said = "--prefix-repetition-prefix-len 512 --prefix-repetition-suffix-len 100 --prefix-repetition-output-len 9";
    assert_eq!(of(said), (100.into(), 9.into(), Some(Prefix::new(512, 10))));
    assert_eq!(of("--prefix-repetition-num-prefixes 3").2, Some(Prefix::new(256, 3)));
    assert_eq!(refused("--dataset-name sharegpt").subject, "--dataset-name");
}

#[test]
fn different_prompts_are_counted() {
    assert_eq!(workload("").distinct, None);
    assert_eq!(workload("--num-dataset-entries 1").distinct, Some(1));
    // aiperf's --num-prompts is that number, ours is that of the requests.
    assert_eq!(ordered("profile --url h:1 --num-prompts 5", None).unwrap().distinct, Some(5));
    assert_eq!(refused("--num-dataset-entries 0").subject, "--num-dataset-entries");
}

#[test]
fn options_win_over_the_lengths_of_a_file() {
    let file = "[workload]\ninput_words = { distribution = \"uniform\", min = 5, max = 9 }\noutput_tokens = 50\n\
                prefix = { words = 40, pool = 3 }\ndistinct = 8\n";
    let of = |options: &str| ordered(&format!("run --url h:1 {options}"), Some(file)).unwrap();
    let whole = of("");
    assert_eq!((whole.input_words, whole.output_tokens), (uniform(5, 9), 50.into()));
    assert_eq!((whole.prefix, whole.distinct), (Some(Prefix::new(40, 3)), Some(8)));
    assert_eq!(of("--isl 7").input_words, 7.into());
    assert_eq!(of("--isl 100 --random-range-ratio 0.5").output_tokens, uniform(25, 75));
    assert_eq!(of("--osl-stddev 5").output_tokens, normal(50.0, 5.0));
    assert_eq!(of("--num-prefix-prompts 9").prefix, Some(Prefix::new(40, 9)));
    assert_eq!(of("--random-prefix-len 0").prefix, None);
}

/// A run file and a plan file of before lengths could differ.
#[test]
fn plans_of_numbers_alone_are_read_and_written_as_before() {
    let before = "[workload]\ninput_words = 200\noutput_tokens = 50\n";
    let plan = Plan::from_toml(before, 1).unwrap();
    assert_eq!((&plan.workload.input_words, &plan.workload.output_tokens), (&200.into(), &50.into()));
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(
        (&json["workload"]["input_words"], &json["workload"]["output_tokens"]),
        (&200.into(), &50.into())
    );
    for absent in ["prefix", "distinct"] {
        assert!(json["workload"].get(absent).is_none(), "{absent}");
    }
}
