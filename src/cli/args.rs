//! What was typed: one structure per command, every value still the text of the user.
//!
//! Reading the values is `value`'s and `plan_from_args`'s business, other spellings are `normalise`'s. The
//! documentation of a field is its help: it states the unit and the default.

use std::ffi::OsString;

use argh::{ArgsInfo, FromArgs};

use super::aliases::Tool;
use super::model_options::ModelArgs;
use super::normalise::{self, Normal};
use crate::plan::Error;

mod name;

pub use name::{Name, Placed};

/// Load-test a server at chosen loads and print one row per load.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct RunArgs {
    /// base URL of the server, with or without /v1 or the full path; repeat for several servers, as URL=3 with a weight, or
    /// give @file as --base-url-file (required unless in --config)
    #[argh(option, arg_name = "url")]
    pub base_url: Vec<String>,
    /// file of base URLs, one a line, with a weight behind it where there are some; # begins a comment (default: none)
    #[argh(option, arg_name = "file")]
    pub base_url_file: Vec<String>,
    /// which of several servers gets a request: round_robin, in turn; least_outstanding, that with the fewest under way;
    /// random, drawn by the seed; weighted, in turn by weights; sticky_session, one for all requests of a session and of a
    /// user (default: round_robin, or weighted with weights)
    #[argh(option, arg_name = "how")]
    pub url_strategy: Option<String>,
    /// how often each server is chosen, whole numbers in their order, as in 3,1 (default: all alike)
    #[argh(option, arg_name = "n,...")]
    pub url_weights: Option<String>,
    /// response header in which a replica says who it is, as in x-served-by: the report tells them apart (default: none)
    #[argh(option, arg_name = "name")]
    pub replica_header: Option<String>,
    /// connect to all addresses of a server's name in turn, and tell them apart in the report (default: off, the first
    /// that answers)
    #[argh(switch)]
    pub all_addresses: bool,
    /// what requests share: pooled, connections that are idle; never, none, each opens one of its own; sticky-user-sessions,
    /// all turns of a session one that is closed at its end (default: pooled)
    #[argh(option, arg_name = "how")]
    pub connection_reuse_strategy: Option<String>,
    /// most connections to each server at once, over all threads; a request beyond them waits, which counts from when it was
    /// planned (default: no limit)
    #[argh(option, arg_name = "n")]
    pub max_connections: Option<String>,
    /// a connection older than so many seconds takes no further request (default: no limit)
    #[argh(option, arg_name = "s")]
    pub max_connection_age: Option<String>,
    /// a connection that has served so many requests takes no further one (default: no limit)
    #[argh(option, arg_name = "n")]
    pub max_requests_per_connection: Option<String>,
    /// number of connections to each server, with TLS, that stand before a level begins (default: 0, each is opened for the
    /// first request that needs it)
    #[argh(option, arg_name = "n")]
    pub prewarm_connections: Option<String>,
    /// HOST:PORT:ADDRESS:PORT, as in curl: requests for the first go to the second, a field left empty stands for any or for
    /// the same; repeatable, the first that fits counts (default: none)
    #[argh(option, arg_name = "rule")]
    pub connect_to: Vec<String>,
    /// path of the Unix socket that the server listens on; --base-url unix:///path does the same (default: TCP)
    #[argh(option, arg_name = "path")]
    pub unix_socket: Option<String>,
    /// host of the server, instead of --base-url (default: 127.0.0.1)
    #[argh(option, hidden_help)]
    pub host: Option<String>,
    /// port of the server, instead of --base-url (default: 8000)
    #[argh(option, hidden_help)]
    pub port: Option<String>,
    /// path of the request (default: the backend's, /v1/chat/completions)
    #[argh(option, arg_name = "path")]
    pub endpoint: Option<String>,
    /// API: openai-chat, openai (text completions), messages, responses, ollama, ollama-generate, llama.cpp, sglang,
    /// openai-embeddings or raw (default: openai-chat, or what the URL's path says)
    #[argh(option, arg_name = "api")]
    pub backend: Option<String>,
    /// with --backend raw, the body of a request, a JSON object or a file of it; in its strings {{prompt}}, {{model}}, and
    /// as whole strings {{max_tokens}} and {{stream}} (required there)
    #[argh(option, arg_name = "json")]
    pub raw_body: Option<String>,
    /// with --backend raw, the JSON pointer to new text in an event (default: /text)
    #[argh(option, arg_name = "pointer")]
    pub raw_content: Option<String>,
    /// with --backend raw, each event has all text so far (default: no, only what is new)
    #[argh(switch)]
    pub raw_cumulative: bool,
    /// with --backend raw, the JSON pointer to the finish reason, a word or true (default: none, DONE or the end of the
    /// body ends an answer)
    #[argh(option, arg_name = "pointer")]
    pub raw_finish: Option<String>,
    /// with --backend raw, the JSON pointer to the number of prompt tokens (default: none)
    #[argh(option, arg_name = "pointer")]
    pub raw_prompt_tokens: Option<String>,
    /// with --backend raw, the JSON pointer to the number of output tokens so far (default: none, events are counted)
    #[argh(option, arg_name = "pointer")]
    pub raw_output_tokens: Option<String>,
    /// model asked for; repeat for several, among which requests choose by --model-selection-strategy (default: the only
    /// one of the server)
    #[argh(option, arg_name = "name", short = 'm')]
    pub model: Vec<String>,
    /// name to ask for where the server's differs from --model (default: --model)
    #[argh(option, arg_name = "name")]
    pub served_model_name: Option<String>,
    /// how often each --model is asked for, whole numbers in their order, as in 3,1 (default: all alike)
    #[argh(option, arg_name = "n,...")]
    pub model_weights: Option<String>,
    /// how requests choose among several models: round-robin, in turn, by weights where there are some; random, each drawn
    /// by the seed, by weights as well; weighted, random that insists on weights (default: round-robin)
    #[argh(option, arg_name = "how")]
    pub model_selection_strategy: Option<String>,
    /// adapters to ask for by name in place of --model, several after one name, as in vLLM (default: none)
    #[argh(option, arg_name = "name...")]
    pub lora_modules: Vec<String>,
    /// how requests choose among --lora-modules: random or round-robin (default: random)
    #[argh(option, arg_name = "how")]
    pub lora_assignment: Option<String>,
    /// API key, or the name of the environment variable that holds it; never stored (default: OPENAI_API_KEY if set)
    #[argh(option, arg_name = "key")]
    pub api_key: Option<String>,
    /// further request header, 'Name: value' or 'Name=value'; repeatable; secret ones are never stored (default:
    /// none)
    #[argh(option, arg_name = "header", short = 'H')]
    pub header: Vec<String>,
    /// accept any TLS certificate (default: off)
    #[argh(switch)]
    pub insecure: bool,
    /// PEM file with the root certificates to trust (default: the system's)
    #[argh(option, arg_name = "file")]
    pub cacert: Option<String>,
    /// client certificate, PEM, with those between it and a root: a file, or env:NAME for a variable that holds it; never
    /// stored (default: none)
    #[argh(option, arg_name = "file")]
    pub cert: Option<String>,
    /// private key of --cert, PEM and not encrypted: a file, or env:NAME; never stored (default: beside the certificate)
    #[argh(option, arg_name = "file")]
    pub key: Option<String>,
    /// name that is asked for in the TLS handshake (SNI) and that the certificate must have (default: the URL's host)
    #[argh(option, arg_name = "name")]
    pub tls_sni: Option<String>,
    /// whether a further connection takes up the TLS session of an earlier one: on or off (default: on)
    #[argh(option, arg_name = "on|off")]
    pub tls_session_resumption: Option<String>,
    /// ask the server to empty its prefix cache before each level, where it has an endpoint for that: vLLM's
    /// /reset_prefix_cache or SGLang's /flush_cache (default: off)
    #[argh(switch)]
    pub reset_prefix_cache: bool,
    /// ask for whole answers; then there is no TTFT, TPOT and ITL (default: off)
    #[argh(switch)]
    pub no_streaming: bool,
    /// ask for streamed answers (default: on)
    #[argh(switch, hidden_help)]
    pub streaming: bool,

    /// users who send their next request when the answer is complete (a closed loop); with a finite --request-rate
    /// the most requests in flight; a comma list makes one level of each (default: no limit)
    #[argh(option, arg_name = "n,...", short = 'c')]
    pub max_concurrency: Option<String>,
    /// requests per second, whatever the answers do (an open loop), or inf; a comma list makes one level of each
    /// (default: inf: all at once, or as fast as the users of --max-concurrency go)
    #[argh(option, arg_name = "rate,...")]
    pub request_rate: Option<String>,
    /// shape of gamma gaps between sends, a number without unit: 1 is Poisson, below is bursty, above is regular
    /// (default: 1)
    #[argh(option, arg_name = "k")]
    pub burstiness: Option<String>,
    /// gaps between sends of a finite rate: poisson, constant or gamma; or burst, or trace, the times of --trace
    /// (default: poisson)
    #[argh(option, arg_name = "pattern")]
    pub arrival_pattern: Option<String>,
    /// a rate over time in place of --request-rate: RATE@TIME or RATE..RATE@TIME, with :exp for one that grows by the same
    /// factor in equal times, comma-separated, in requests per second and seconds, as in 0..50@60,50@5m; or a file,
    /// .csv with columns time and rate, or .json as aiperf has it; the last rate is held (default: none)
    #[argh(option, arg_name = "series")]
    pub request_rate_series: Option<String>,
    /// begin the series again when it is over (default: its last rate is held)
    #[argh(switch)]
    pub request_rate_series_repeat: bool,
    /// let the rate rise from 0 to --request-rate in so many seconds, linearly, before it is held (default: 0)
    #[argh(option, arg_name = "s")]
    pub request_rate_ramp_duration: Option<String>,
    /// let the rate go from --ramp-up-start-rps to --ramp-up-end-rps over the requests of a level, linear or exponential in
    /// their number, as in vLLM (default: none)
    #[argh(option, arg_name = "how")]
    pub ramp_up_strategy: Option<String>,
    /// rate of that ramp at the first request, in requests per second (default: none)
    #[argh(option, arg_name = "rate")]
    pub ramp_up_start_rps: Option<String>,
    /// rate of that ramp at the last request, in requests per second (default: none)
    #[argh(option, arg_name = "rate")]
    pub ramp_up_end_rps: Option<String>,
    /// send so many requests at once, again and again, SIZE@SECONDS, as in 32@10 for 32 every 10 s (default: none)
    #[argh(option, arg_name = "n@s")]
    pub bursts: Option<String>,
    /// let the users of --max-concurrency come in one after another, the last of them after so many seconds, all of which
    /// are cut off a level of 60 s or more (default: 0, all come at once)
    #[argh(option, arg_name = "s")]
    pub concurrency_ramp_duration: Option<String>,
    /// stretch the gaps of a rate so that the last of n requests comes at exactly n / rate, or when the series has made so
    /// many; needs --num-prompts (default: off; on in `bench serve`)
    #[argh(switch)]
    pub exact_count: bool,
    /// leave the gaps as they were drawn (default: on, except in `bench serve`)
    #[argh(switch)]
    pub no_exact_count: bool,
    /// pause of a user between an answer and the next request, in seconds (default: 0)
    #[argh(option, arg_name = "s")]
    pub think_time: Option<String>,
    /// plan the requests of the users of a closed loop at this rate, in requests per second over all of them: each user
    /// has a schedule, and sends late where its answer before comes late; latencies count from the plan as well
    /// (default: no plan, users send when they are free)
    #[argh(option, arg_name = "rate")]
    pub pace: Option<String>,
    /// the same as the gap between the planned sends of each user, in seconds (default: none)
    #[argh(option, arg_name = "s")]
    pub pace_interval: Option<String>,
    /// gap between the first sends of the users of one thread, in microseconds (default: 50)
    #[argh(option, arg_name = "us")]
    pub start_spread: Option<String>,
    /// requests per level (default: max(16, 4 N) for N users, 64 for a rate or a burst; none if --duration is given)
    #[argh(option, arg_name = "n")]
    pub num_prompts: Option<String>,
    /// sessions per level, each with all of its turns; beside it --num-prompts counts requests, and what is reached first
    /// ends the level (default: as many as --num-prompts)
    #[argh(option, arg_name = "n")]
    pub max_sessions: Option<String>,
    /// length of a level in seconds, or as 90s, 5m, 1h (default: none)
    #[argh(option, arg_name = "s")]
    pub duration: Option<String>,
    /// let each level go on until half the 95 % interval of a figure is within this share of its value, FIGURE:SHARE or
    /// SHARE, as in ttft_p99:5% or 5%; figures are attainment and percentiles of latencies (default: off; for a share
    /// alone attainment, or ttft_p50 with --goodput none)
    #[argh(option, arg_name = "figure:share")]
    pub until_ci: Option<String>,
    /// the longest that --until-ci makes a level, in planned lengths; it is doubled again and again (default: 16)
    #[argh(option, arg_name = "n")]
    pub until_ci_max: Option<String>,
    /// how long requests still open at the end are followed, in seconds (default: 30)
    #[argh(option, arg_name = "s")]
    pub benchmark_grace_period: Option<String>,
    /// where the measurement window of a level of 60 s or more begins: default, after 10 s, a tenth of it or twice the
    /// median E2E; mser5, where the requests in flight settle; or none, at its first send (default: default)
    #[argh(option, arg_name = "rule")]
    pub steady_cut: Option<String>,
    /// stress test: the load of --request-rate, then more than the server takes, then the same load again; says how long
    /// it took until the server was as before, and what was lost (default: off)
    #[argh(switch)]
    pub stress: bool,
    /// the overload of --stress, in requests per second (default: looked for in steps of a quarter, until one fails)
    #[argh(option, arg_name = "rps")]
    pub stress_to: Option<String>,
    /// how long the load is normal at first in --stress, in seconds (default: 30)
    #[argh(option, arg_name = "s")]
    pub stress_before: Option<String>,
    /// how long the load takes to rise in --stress, and how long a step is that looks for the overload, in seconds
    /// (default: 10)
    #[argh(option, arg_name = "s")]
    pub stress_ramp: Option<String>,
    /// how long the overload of --stress lasts, in seconds (default: 30)
    #[argh(option, arg_name = "s")]
    pub stress_hold: Option<String>,
    /// how long the load is normal in the end of --stress, and is watched, in seconds (default: 60)
    #[argh(option, arg_name = "s")]
    pub stress_after: Option<String>,
    /// a step of --stress fails when surely more than this share of its requests fail or miss a limit of --goodput
    /// (default: 10%)
    #[argh(option, arg_name = "share")]
    pub stress_bad: Option<String>,
    /// look at each level in slices of so long, in seconds: latencies, failures and throughput of each are saved, and what
    /// drifts over them is found; at most 1440 are kept, a longer level has them joined two by two (default: none)
    #[argh(option, arg_name = "s")]
    pub slice_duration: Option<String>,
    /// warm-up requests before each level, with prompts of their own (default: 2)
    #[argh(option, arg_name = "n")]
    pub num_warmups: Option<String>,
    /// how often every level is run, a number of runs: all in turn, then all again with new prompts and gaps; the
    /// spread between them gives intervals, which 5 are the least for (default: 1)
    #[argh(option, arg_name = "n")]
    pub num_runs: Option<String>,
    /// the part of the run that this process makes, I/N from 1/N to N/N: N processes with the same other options and the
    /// same seed given, on any hosts, send together what one would send alone, a cap being split; `tokload merge` makes
    /// one result of theirs, which are saved as NAME.share-I-of-N.json; auto takes it from srun, mpirun or a Kubernetes
    /// Job, none makes all of it whatever has started it (default: auto)
    #[argh(option, arg_name = "i/n")]
    pub share: Option<String>,
    /// when the first measured request is planned: a time with its zone as 2026-12-01T18:00:00Z (UTC) or
    /// 2026-12-01T19:00:00+01:00, or in seconds since 1970; +10s after all is ready; or together, when all shares are ready, which they tell each other in a folder beside the output
    /// (default: together for shares that a launcher has started, at once for others)
    #[argh(option, arg_name = "time")]
    pub start_at: Option<String>,
    /// how long shares wait for each other before they give up, in seconds (default: 300)
    #[argh(option, arg_name = "s")]
    pub share_timeout: Option<String>,

    /// file of recorded requests to send at their times: a trace of Mooncake, Bailian, Azure or BurstGPT, or AIPerf's data
    /// sets with times; --max-concurrency is then the most requests in flight (default: none)
    #[argh(option, arg_name = "file")]
    pub trace: Option<String>,
    /// send the requests of --dataset-path at their times, as --trace does (default: off)
    #[argh(switch)]
    pub fixed_schedule: bool,
    /// format of the trace or data set: azure-llm, azure-lmm, burstgpt, mooncake, bailian, single-turn, multi-turn (default: told from
    /// the file's beginning)
    #[argh(option, arg_name = "name")]
    pub trace_format: Option<String>,
    /// how much faster than recorded the trace is sent, a factor without unit: 2 halves its times; a comma list makes one
    /// level of each (default: 1)
    #[argh(option, arg_name = "x,...")]
    pub trace_speedup: Option<String>,
    /// part of the trace to send, FROM:UNTIL in seconds after its first request, as recorded; either may be left out
    /// (default: all)
    #[argh(option, arg_name = "from:until")]
    pub trace_slice: Vec<String>,
    /// what a record does that cannot be read or has no time: fail, or skip, which leaves it out and counts it (default:
    /// fail)
    #[argh(option, arg_name = "what")]
    pub trace_errors: Option<String>,
    /// send only requests that were recorded for this model; repeatable; all go to --model (default: all)
    #[argh(option, arg_name = "name")]
    pub trace_model: Vec<String>,
    /// send calls that failed when they were recorded, too (default: off)
    #[argh(switch)]
    pub trace_failed: bool,
    /// cut longer prompts to so many tokens, where the trace gives lengths (default: none)
    #[argh(option, arg_name = "n")]
    pub trace_input_max: Option<String>,
    /// ask for answers of at most so many tokens (default: none)
    #[argh(option, arg_name = "n")]
    pub trace_output_max: Option<String>,
    /// tokens of a hashed block (default: the format's, 512 for mooncake, 16 for bailian)
    #[argh(option, arg_name = "n")]
    pub trace_block_tokens: Option<String>,

    /// workload of a kind, options of which those that are given win: chat, rag, code, agent, summarize, batch, or help
    /// for what each stands for (default: none)
    #[argh(option, arg_name = "name")]
    pub preset: Option<String>,
    /// kind of prompts: random, synthetic words; the format of --dataset-path, as sharegpt, custom, dolly or csv; or prefix_repetition, the same after one of 10 beginnings that prompts
    /// share, with 256 words of each and 128 tokens in an answer unless said (default: random)
    #[argh(option, arg_name = "name")]
    pub dataset_name: Option<String>,
    /// file to take prompts from, at any load: JSON lines with prompt, text or messages, ShareGPT, Dolly, AIPerf's and
    /// OpenAI's batch files, a column of CSV, lines of text; or the trace of --fixed-schedule (default: none)
    #[argh(option, arg_name = "file")]
    pub dataset_path: Option<String>,
    /// column of the prompts in a CSV file (default: prompt, text or the only one)
    #[argh(option, arg_name = "name")]
    pub dataset_column: Option<String>,
    /// leave out prompts of --dataset-path whose lengths lie outside of these ranges, in tokens as the file says or as four
    /// for three words of a text: prompt:4-1024,answer:4-,total:-2048 (default: none are left out)
    #[argh(option, arg_name = "ranges")]
    pub dataset_lengths: Vec<String>,
    /// choose prompts of ShareGPT and BurstGPT by the rules of another tool: vllm, with lengths as for --dataset-lengths, or
    /// none (default: none, vllm for bench serve)
    #[argh(option, arg_name = "tool")]
    pub compat: Option<String>,
    /// take the prompts of --dataset-path in the order of the file (default: in one by the seed, another in each pass)
    #[argh(switch)]
    pub disable_shuffle: bool,
    /// length of a prompt in words, each one token in most tokenizers, or in tokens (see --calibrate): a number, or drawn for each request by
    /// uniform:min=A,max=B, normal:mean=M,stddev=D, lognormal:median=M,sigma=S (or mean=M), gamma:mean=M,shape=K (or cv=C)
    /// or zipf:exponent=S,max=B, these also with min=A and max=B, or empirical:FILE, a file of lengths and perhaps their
    /// weights (default: 128)
    #[argh(option, arg_name = "n")]
    pub random_input_len: Option<String>,
    /// tokenizer.json of the server's model, a folder of one, or ORG/NAME in the local cache of Hugging Face: lengths of
    /// prompts are then tokens of it, exactly (default: none, lengths are words)
    #[argh(option, arg_name = "path|org/name")]
    pub tokenizer: Option<String>,
    /// ask the server before the run how it counts, by /tokenize or by short requests: lengths of prompts are then tokens
    /// as its usage reports them, a chat template on top (default: off, lengths are words)
    #[argh(switch)]
    pub calibrate: bool,
    /// send prompts as lists of token ids, by --tokenizer or as --calibrate finds them; for --backend openai, llama.cpp
    /// and sglang (default: off)
    #[argh(switch)]
    pub tokenize_prompt: bool,
    /// length of an answer in tokens, sent as max_tokens: a number, or a distribution as for --random-input-len
    /// (default: 64, or what a data set says)
    #[argh(option, arg_name = "n")]
    pub random_output_len: Option<String>,
    /// draw the lengths of prompt and answer as pairs, as in 256,128:60;512|20,256|10:40 (shares in percent, |20 a standard
    /// deviation) or empirical:FILE, a file of pairs and perhaps their weights (default: each by itself)
    #[argh(option, arg_name = "pairs")]
    pub sequence_distribution: Option<String>,
    /// draw lengths uniformly from this share below to this share above the number given for prompts and for answers, a
    /// share from 0 to below 1 (default: 0)
    #[argh(option, arg_name = "share")]
    pub random_range_ratio: Option<String>,
    /// draw the lengths of prompts from a normal distribution of this standard deviation, in words (default: 0)
    #[argh(option, arg_name = "n")]
    pub isl_stddev: Option<String>,
    /// draw the lengths of answers from a normal distribution of this standard deviation, in tokens (default: 0)
    #[argh(option, arg_name = "n")]
    pub osl_stddev: Option<String>,
    /// words that all prompts begin with, before their own; a prompt may have 0 of its own (default: 0)
    #[argh(option, arg_name = "n")]
    pub random_prefix_len: Option<String>,
    /// beginnings that prompts share, a number of them; each request has one, drawn by the seed (default: 0)
    #[argh(option, arg_name = "n")]
    pub num_prefix_prompts: Option<String>,
    /// length of each of these beginnings in words, which come before the prompt's own (default: 0)
    #[argh(option, arg_name = "n")]
    pub prefix_prompt_length: Option<String>,
    /// draw these beginnings by a zipf distribution of this exponent, so that some are frequent and most are rare; 0 draws
    /// all alike (default: 0)
    #[argh(option, arg_name = "s")]
    pub prefix_zipf: Option<String>,
    /// share of all prompt tokens of a level that an unlimited prefix cache would find: only as many requests begin with a
    /// shared beginning as that takes (default: all do)
    #[argh(option, arg_name = "share")]
    pub prefix_hit_fraction: Option<String>,
    /// words of a system message that all requests have, before all else (default: 0, no system message)
    #[argh(option, arg_name = "n")]
    pub shared_system_prompt_length: Option<String>,
    /// words that the first turn of each session has in addition, other ones in each (default: 0)
    #[argh(option, arg_name = "n")]
    pub user_context_prompt_length: Option<String>,
    /// number of different prompts, which requests take in turn, again and again; 1 makes all alike (default: every
    /// request has a prompt of its own, or all of --dataset-path)
    #[argh(option, arg_name = "n")]
    pub num_dataset_entries: Option<String>,
    /// send sessions of several turns: each later turn repeats what was said before, answers included, and goes when
    /// the answer before it has ended; --num-prompts, rates and users are then those of sessions; of a data set all
    /// turns are sent (default: off: every request stands alone)
    #[argh(switch)]
    pub multi_turn: bool,
    /// turns of a session, a number or a distribution as in uniform:min=2,max=8; those of a file are the file's
    /// (default: 3 with --multi-turn)
    #[argh(option, arg_name = "n|dist")]
    pub multi_turn_num_turns: Option<String>,
    /// fewest turns of a session, where their number is drawn evenly from a range, 0: as --multi-turn-num-turns; conversations
    /// of --dataset-path that have fewer are left out (default: 0)
    #[argh(option, arg_name = "n")]
    pub multi_turn_min_turns: Option<String>,
    /// most turns of a session, likewise; longer conversations of --dataset-path are cut off there (default: 0)
    #[argh(option, arg_name = "n")]
    pub multi_turn_max_turns: Option<String>,
    /// part of the words of each turn, from its beginning, that all turns of all sessions have in common; turns then stand
    /// alone, and repeat nothing of what was said (default: 0: they repeat it)
    #[argh(option, arg_name = "share")]
    pub multi_turn_prefix_global_ratio: Option<String>,
    /// part of the words of each turn, behind that, that the turns of one session have in common; likewise (default: 0)
    #[argh(option, arg_name = "share")]
    pub multi_turn_prefix_conversation_ratio: Option<String>,
    /// standard deviation of normal numbers of turns around --multi-turn-num-turns, a number of turns (default: 0)
    #[argh(option, arg_name = "n")]
    pub session_turns_stddev: Option<String>,
    /// pause between an answer and the next turn of its session, in milliseconds, a number or a distribution; a pause
    /// that a file gives wins (default: 0)
    #[argh(option, arg_name = "ms|dist")]
    pub multi_turn_delay_ms: Option<String>,
    /// standard deviation of normal pauses around --multi-turn-delay-ms, in milliseconds (default: 0)
    #[argh(option, arg_name = "ms")]
    pub session_turn_delay_stddev: Option<String>,
    /// make the pauses between turns so many times as long, those of a file too; a factor (default: 1)
    #[argh(option, arg_name = "k")]
    pub session_delay_ratio: Option<String>,
    /// longest pause between an answer and the next turn, in seconds; longer ones, those of a file too, are cut to it
    /// (default: none is cut)
    #[argh(option, arg_name = "s")]
    pub inter_turn_delay_cap_seconds: Option<String>,
    /// no pauses between turns, whatever a file says: --session-delay-ratio 0 (default: off)
    #[argh(switch)]
    pub ignore_trace_delays: bool,
    /// when the requests of recorded agents' sessions go: think-only, the recorded think time after the answers that they
    /// wait for, or original, at their time in the session but not before those answers (default: think-only, original
    /// with --trace)
    #[argh(option, arg_name = "think-only|original")]
    pub timing_strategy: Option<String>,
    /// the same as --timing-strategy think-only (default: off)
    #[argh(switch)]
    pub use_think_time_only: bool,
    /// words that a later turn adds, a number or a distribution (default: as --random-input-len)
    #[argh(option, arg_name = "n|dist")]
    pub per_turn_input_len: Option<String>,
    /// what later turns repeat as the answers: live, those of the server in this run, or recorded, those of the data set
    /// where it has any (default: live)
    #[argh(option, arg_name = "live|recorded")]
    pub replies: Option<String>,
    /// name of a request header that bears a value of its own for each session, the same for all of its turns, as
    /// X-Session-ID for vLLM's router or X-Correlation-ID for others (default: none)
    #[argh(option, arg_name = "name")]
    pub session_header: Option<String>,
    /// ask the server to go on until max_tokens (default: on)
    #[argh(switch)]
    pub ignore_eos: bool,
    /// let the model end its answers (default: off)
    #[argh(switch)]
    pub no_ignore_eos: bool,
    /// choices per request (default: 1)
    #[argh(option, arg_name = "n")]
    pub n: Option<String>,
    /// sampling temperature, a number without unit (default: the server's)
    #[argh(option, arg_name = "x")]
    pub temperature: Option<String>,
    /// nucleus sampling, a share of 1 (default: the server's)
    #[argh(option, arg_name = "x")]
    pub top_p: Option<String>,
    /// sample from that many tokens (default: the server's)
    #[argh(option, arg_name = "n")]
    pub top_k: Option<String>,
    /// least probability, a share of 1 (default: the server's)
    #[argh(option, arg_name = "x")]
    pub min_p: Option<String>,
    /// frequency penalty, a number without unit (default: the server's)
    #[argh(option, arg_name = "x")]
    pub frequency_penalty: Option<String>,
    /// presence penalty, a number without unit (default: the server's)
    #[argh(option, arg_name = "x")]
    pub presence_penalty: Option<String>,
    /// repetition penalty, a number without unit (default: the server's)
    #[argh(option, arg_name = "x")]
    pub repetition_penalty: Option<String>,
    /// further fields of the request's body, a JSON object; repeatable (default: none)
    #[argh(option, arg_name = "json")]
    pub extra_body: Vec<String>,
    /// ask for token counts on every event, where the server has them (default: off)
    #[argh(switch)]
    pub continuous_usage_stats: bool,
    /// seed of all prompts and gaps, an integer (default: a fresh one per run, printed and stored)
    #[argh(option, arg_name = "n")]
    pub seed: Option<String>,

    /// percent of the requests that their users give up, by closing the connection, from 0 to 100; drawn by the seed
    /// (default: 0)
    #[argh(option, arg_name = "percent")]
    pub request_cancellation_rate: Option<String>,
    /// how long after it was sent such a request is given up, in seconds (default: 0, at once, unless
    /// --request-cancellation-tokens is given)
    #[argh(option, arg_name = "s")]
    pub request_cancellation_delay: Option<String>,
    /// with which token of its answer such a request is given up, a number from 1, content events where the server does
    /// not count tokens as it goes; whichever comes first counts (default: none)
    #[argh(option, arg_name = "n")]
    pub request_cancellation_tokens: Option<String>,
    /// most bytes per second that a slow reader reads of its response, from 16 (default: nobody reads slowly)
    #[argh(option, arg_name = "bytes")]
    pub read_rate: Option<String>,
    /// share of the requests that are read at --read-rate, drawn by the seed; their latencies are reported apart (default:
    /// 1)
    #[argh(option, arg_name = "share")]
    pub slow_reader_share: Option<String>,

    /// limits that a good request keeps, in milliseconds: ttft, ttfa, tpot, itl_max, e2e, as in ttft:500 tpot:50; or
    /// none (default: ttft:500 tpot:50)
    #[argh(option, arg_name = "key:ms")]
    pub goodput: Vec<String>,
    /// longest time of a whole request, in seconds, 0 for no limit (default: 3600)
    #[argh(option, arg_name = "s")]
    pub request_timeout_seconds: Option<String>,
    /// longest silence within a stream, in seconds, 0 for no limit (default: 120)
    #[argh(option, arg_name = "s")]
    pub no_progress_timeout: Option<String>,
    /// longest wait for the first token, in seconds, 0 for no limit (default: 600)
    #[argh(option, arg_name = "s")]
    pub first_token_timeout: Option<String>,
    /// longest wait for a connection, in seconds, 0 for no limit (default: 10)
    #[argh(option, arg_name = "s")]
    pub connect_timeout: Option<String>,
    /// how long to wait for a server that is not ready yet, in seconds (default: 0)
    #[argh(option, arg_name = "s")]
    pub ready_check_timeout_sec: Option<String>,
    /// share of failed requests, from 0 to 1, above which the exit code is 1 (default: only if all failed)
    #[argh(option, arg_name = "share")]
    pub failed_request_threshold: Option<String>,

    /// exit code 4 if the measurement is invalid (default: off)
    #[argh(switch)]
    pub strict: bool,
    /// declare that the server starts anew before each configuration (default: not said, and a line says so)
    #[argh(switch)]
    pub fresh_server: bool,
    /// declare that it goes on from one to the next (default: not said)
    #[argh(switch)]
    pub no_fresh_server: bool,
    /// declare that hardware and software are those of production (default: not said, and a line says so)
    #[argh(switch)]
    pub same_as_production: bool,
    /// declare that they are not (default: not said)
    #[argh(switch)]
    pub no_same_as_production: bool,

    /// threads that send and receive (default: one per core, one core left free when there are more than two)
    #[argh(option, arg_name = "n")]
    pub workers: Option<String>,
    /// cores to pin the threads to, as in 0,2,4-7 (default: all that the process may use)
    #[argh(option, arg_name = "cores")]
    pub cpu_affinity: Option<String>,
    /// do not pin threads to cores (default: off)
    #[argh(switch)]
    pub no_cpu_affinity: bool,
    /// kernel interface: auto, io_uring or epoll (default: auto)
    #[argh(option, arg_name = "driver")]
    pub driver: Option<String>,
    /// stamps of arriving bytes: user, kernel or both; both measures the client's own error, kernel takes it out of the
    /// latencies (default: both where the machine can)
    #[argh(option, arg_name = "which")]
    pub timestamps: Option<String>,
    /// time that each shard wastes, MS per turn of its loop or MS@S every S seconds: shows what a slow client does to
    /// the numbers (default: none)
    #[argh(option, hidden_help, arg_name = "ms")]
    pub client_burn: Option<String>,

    /// URLs of further pages of metrics in Prometheus' text, as http://host:port/metrics; several after one name or
    /// repeated (default: each endpoint's own /metrics, where it has one)
    #[argh(option, arg_name = "url...")]
    pub server_metrics: Vec<String>,
    /// ask no endpoint for its own /metrics (default: each is asked)
    #[argh(switch)]
    pub no_server_metrics: bool,
    /// names of further series to keep of these pages, with * for any text and ? for any character; several after one
    /// name or repeated (default: those known of vLLM, SGLang, llama.cpp, Dynamo and TGI)
    #[argh(option, arg_name = "name...")]
    pub server_metrics_match: Vec<String>,
    /// whom to ask about GPUs: nvml, those of this machine, or nvml=FILE by that library; dcgm=URL, a DCGM exporter;
    /// none; several after one name or repeated (default: nvml, where a server runs on this machine)
    #[argh(option, arg_name = "how...")]
    pub gpu_telemetry: Vec<String>,
    /// ask about no GPU: --gpu-telemetry none (default: off)
    #[argh(switch)]
    pub no_gpu_telemetry: bool,
    /// numbers of the GPUs of this machine that serve, as in 0,2,4-7 (default: all)
    #[argh(option, arg_name = "n,...")]
    pub gpu_index: Option<String>,
    /// from one reading of servers, GPUs and this machine to the next, in seconds (default: 1)
    #[argh(option, arg_name = "s")]
    pub telemetry_interval: Option<String>,

    /// where to save the result (default: tokload-TIME.json)
    #[argh(option, arg_name = "file")]
    pub output_file: Option<String>,
    /// save nothing (default: off)
    #[argh(switch)]
    pub no_save: bool,
    /// overwrite an existing file (default: off)
    #[argh(switch)]
    pub force: bool,
    /// keep no record per request: no later SLO, no exact percentiles, no merge by records (default: off)
    #[argh(switch)]
    pub no_records: bool,
    /// also save the records as JSON lines (default: off)
    #[argh(switch)]
    pub save_detailed: bool,
    /// also save the time of every event (default: off)
    #[argh(switch)]
    pub save_chunks: bool,
    /// write the saved run in the form of another tool, FORM=PATH; repeatable. Forms: aiperf and hgrm (folders), csv,
    /// csv-records, hdrlog, parquet where it is built in, slices of --slice-duration, vllm (default: none)
    #[argh(option, arg_name = "form=path")]
    pub export: Vec<String>,
    /// directory for the files that are saved without a path, made where there is none (default: the current one)
    #[argh(option, arg_name = "dir")]
    pub result_dir: Option<String>,
    /// also save each level as vLLM's client does, one JSON object in LABEL-RATEqps[-concurrencyN]-MODEL-TIME.json, with
    /// the lists of its --save-detailed if that is given (default: off)
    #[argh(switch)]
    pub save_result: bool,
    /// name of that file instead, for one level alone or with --append-result (default: made of the load and the time)
    #[argh(option, arg_name = "file")]
    pub result_filename: Option<String>,
    /// add to that file a line per level, instead of writing it anew (default: off)
    #[argh(switch)]
    pub append_result: bool,
    /// name of the run, stored with it (default: none)
    #[argh(option, arg_name = "text")]
    pub label: Option<String>,
    /// a fact to store with the run, key=value; repeatable (default: none)
    #[argh(option, arg_name = "k=v")]
    pub metadata: Vec<String>,
    /// whose block is printed, in whose definitions: tokload, vllm, aiperf, guidellm, servebench, mlperf, or all of them beside
    /// each other with the reasons why they differ (default: tokload; vllm for `bench serve`, aiperf for `profile`)
    #[argh(option, arg_name = "tool")]
    pub metric_view: Option<String>,
    /// metrics of vLLM's block, a comma list of ttft, tpot, itl, e2el, client_queue_time and e2el_including_client_queue
    /// (default: ttft,tpot,itl, or e2el for embeddings)
    #[argh(option, arg_name = "metric,...")]
    pub percentile_metrics: Option<String>,
    /// percentiles of vLLM's block, a comma list of numbers from 0 to 100 (default: 99)
    #[argh(option, arg_name = "p,...")]
    pub metric_percentiles: Option<String>,
    /// result on standard output: table or json (default: table)
    #[argh(option, arg_name = "format")]
    pub format: Option<String>,
    /// no progress and no notes (default: off)
    #[argh(switch, short = 'q')]
    pub quiet: bool,
    /// what is shown on standard error while the run goes on: dashboard, the whole terminal, in builds that have it; simple,
    /// a line, on a terminal; none (default: simple)
    #[argh(option, arg_name = "kind")]
    pub ui: Option<String>,
    /// no live progress, as --ui none (default: progress on a terminal)
    #[argh(switch)]
    pub no_progress: bool,
    /// answer a Prometheus that asks for /metrics while the run goes on, at this address and port; a port alone is one of
    /// 127.0.0.1, and 0 any that is free (default: off)
    #[argh(option, arg_name = "host:port")]
    pub metrics_listen: Option<String>,
    /// seconds, or as 2m, that it stays open when the run is saved, with its last values: twice the interval of the Prometheus
    /// that asks; Ctrl-C ends it (default: 0, it closes at once)
    #[argh(option, arg_name = "seconds")]
    pub metrics_linger: Option<String>,

    /// plan file to start from; options win over it (default: none)
    #[argh(option, arg_name = "file", short = 'f')]
    pub config: Option<String>,
    /// print the whole plan as a file and end (default: off)
    #[argh(switch)]
    pub print_config: bool,
    /// print the plan and its first requests and end, sending nothing (default: off)
    #[argh(switch)]
    pub dry_run: bool,
}

/// Find a local server, or start the mock, and say within 90 s how many users it serves well.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct QuickArgs {
    /// base URL of the server (default: the first that answers on the usual local ports)
    #[argh(option, arg_name = "url")]
    pub base_url: Option<String>,
    /// model asked for (default: one that is loaded, or the first that generates)
    #[argh(option, arg_name = "name", short = 'm')]
    pub model: Option<String>,
    /// limits in milliseconds that a good request keeps, as in ttft:500 tpot:50 (default: these, or wider ones where one user
    /// alone does not keep them)
    #[argh(option, arg_name = "key:ms")]
    pub goodput: Vec<String>,
    /// how long all of it may take, in seconds or as 1m, at least 15 (default: 90)
    #[argh(option, arg_name = "s")]
    pub max_time: Option<String>,
    /// API key, or the name of the environment variable that holds it; never stored (default: OPENAI_API_KEY if set)
    #[argh(option, arg_name = "key")]
    pub api_key: Option<String>,
    /// accept any TLS certificate (default: off)
    #[argh(switch)]
    pub insecure: bool,
    /// PEM file with the root certificates to trust (default: the system's)
    #[argh(option, arg_name = "file")]
    pub cacert: Option<String>,
    /// where to save the result (default: tokload-TIME.json)
    #[argh(option, arg_name = "file")]
    pub output_file: Option<String>,
    /// save nothing (default: off)
    #[argh(switch)]
    pub no_save: bool,
    /// overwrite an existing file (default: off)
    #[argh(switch)]
    pub force: bool,
    /// result on standard output: table or json (default: table)
    #[argh(option, arg_name = "format")]
    pub format: Option<String>,
    /// no progress and no notes (default: off)
    #[argh(switch, short = 'q')]
    pub quiet: bool,
    /// what is shown on standard error while the run goes on: dashboard, the whole terminal, in builds that have it; simple,
    /// a line, on a terminal; none (default: simple)
    #[argh(option, arg_name = "kind")]
    pub ui: Option<String>,
    /// answer a Prometheus that asks for /metrics while the run goes on, at this address and port; a port alone is one of
    /// 127.0.0.1, and 0 any that is free (default: off)
    #[argh(option, arg_name = "host:port")]
    pub metrics_listen: Option<String>,
    /// seconds, or as 2m, that it stays open when all is saved; Ctrl-C ends it (default: 0, it closes at once)
    #[argh(option, arg_name = "seconds")]
    pub metrics_linger: Option<String>,
}

/// Find the highest load at which enough requests keep their limits.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct FindCapacityArgs {
    /// what to vary: concurrency, users who send their next request when the answer is complete; rate, requests per second;
    /// speedup, that of --trace; or, at the load of --max-concurrency (1) or --request-rate, input-len, tokens of a prompt, or
    /// output-len, tokens of an answer (default: concurrency, or speedup with --trace)
    #[argh(option, arg_name = "what")]
    pub vary: Option<String>,
    /// share of requests that is to be good, as in 90% or 0.9 (default: 90%)
    #[argh(option, arg_name = "share")]
    pub target: Option<String>,
    /// share of requests that may fail, as in 1% or 0.01 (default: 0)
    #[argh(option, arg_name = "share")]
    pub max_failures: Option<String>,
    /// the first load to try, in users, requests per second, times the recorded speed or tokens (default: 1; prompts of 128
    /// tokens, answers of 16)
    #[argh(option, arg_name = "load")]
    pub start: Option<String>,
    /// the highest load to try (default: 4096 users, 1000000 requests per second, 1000 times the recorded speed, prompts
    /// of 131072 tokens, answers of 8192)
    #[argh(option, arg_name = "load")]
    pub max: Option<String>,
    /// how near the ends of the answer are to be, as a share of the lower one (default: 10%; whole loads at least 1)
    #[argh(option, arg_name = "share")]
    pub tolerance: Option<String>,
    /// begin no further load after this time, in seconds or as 10m (default: none)
    #[argh(option, arg_name = "s")]
    pub max_time: Option<String>,
    /// how far a load that is not decided is lengthened, in planned lengths; it is doubled again and again (default: 16)
    #[argh(option, arg_name = "n")]
    pub max_length: Option<String>,
    /// overload the server in the end, and see whether it bears the same load as before behind that (default: off)
    #[argh(switch)]
    pub hysteresis: bool,
    /// go on with the search of this saved run, which was interrupted, with its plan (default: none)
    #[argh(option, arg_name = "run")]
    pub resume: Option<String>,
}

/// Print the table of a saved run again, also under another SLO.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct ReportArgs {
    /// the saved run, a tokload-TIME.json; of several the first is reported and the others overlay it in the charts of
    /// html
    #[argh(positional, arg_name = "run")]
    pub runs: Vec<String>,
    /// limits that a good request keeps, in milliseconds, as in ttft:500 tpot:50; or none (default: the run's own)
    #[argh(option, arg_name = "key:ms")]
    pub goodput: Vec<String>,
    /// in whose definitions the numbers are: tokload, vllm, aiperf, guidellm, servebench, mlperf, or all of them beside each
    /// other with the reasons why they differ (default: tokload)
    #[argh(option, arg_name = "tool")]
    pub metric_view: Option<String>,
    /// metrics of vLLM's block, a comma list of ttft, tpot, itl, e2el, client_queue_time and e2el_including_client_queue
    /// (default: ttft,tpot,itl, or e2el for embeddings)
    #[argh(option, arg_name = "metric,...")]
    pub percentile_metrics: Option<String>,
    /// percentiles of vLLM's block, a comma list of numbers from 0 to 100 (default: 99)
    #[argh(option, arg_name = "p,...")]
    pub metric_percentiles: Option<String>,
    /// write the saved run in the form of another tool, FORM=PATH; repeatable. Forms: aiperf and hgrm (folders), csv,
    /// csv-records, hdrlog, parquet where it is built in, slices of --slice-duration, vllm (default: none)
    #[argh(option, arg_name = "form=path")]
    pub export: Vec<String>,
    /// write over what is there, for --export (default: off)
    #[argh(switch)]
    pub force: bool,
    /// form of the report: table, json, markdown, html or csv (default: that of the name of --output, else table)
    #[argh(option, arg_name = "format")]
    pub format: Option<String>,
    /// file to write the report to, over an existing one (default: standard output)
    #[argh(option, arg_name = "file")]
    pub output: Option<String>,
    /// directory to write each chart to, as NAME.svg and NAME.png (default: no charts but those of html)
    #[argh(option, arg_name = "dir")]
    pub charts: Option<String>,
    /// also say in words why throughput bends, with Little's law line by line (default: off)
    #[argh(switch)]
    pub explain: bool,
    /// also say what the findings that are only noted rest on (default: off)
    #[argh(switch)]
    pub findings: bool,
    /// exit code 4 if the measurement is invalid (default: off)
    #[argh(switch)]
    pub strict: bool,
}

/// Show a run around: prints a block of Markdown to paste, and writes a card as SVG and PNG.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct ShareArgs {
    /// the saved run, a tokload-TIME.json
    #[argh(positional, arg_name = "run")]
    pub run: String,
    /// name of the card without its extension (default: that of the run with -card behind it)
    #[argh(option, arg_name = "name")]
    pub card: Option<String>,
    /// write no card (default: off)
    #[argh(switch)]
    pub no_card: bool,
}

/// Make one run of the shares of a run, which several processes made (--share).
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct MergeArgs {
    /// the files of all shares, NAME.share-1-of-N.json and so on
    #[argh(positional, arg_name = "files")]
    pub files: Vec<String>,
    /// where to save the result (default: tokload-TIME.json)
    #[argh(option, arg_name = "file")]
    pub output_file: Option<String>,
    /// overwrite an existing file (default: off)
    #[argh(switch)]
    pub force: bool,
    /// merge what there is although shares are missing; the result says which, and what load was truly offered (default:
    /// off)
    #[argh(switch)]
    pub allow_missing: bool,
    /// how the shares of a level are put together: auto, at their first planned sends, unless wall clocks say that they
    /// began more than 0.1 s and a hundredth of the level apart, or start, whatever the clocks say (default: auto)
    #[argh(option, arg_name = "how")]
    pub align: Option<String>,
    /// result on standard output: table or json (default: table)
    #[argh(option, arg_name = "format")]
    pub format: Option<String>,
    /// exit code 4 if the measurement is invalid (default: off)
    #[argh(switch)]
    pub strict: bool,
}

/// Say whether a run got worse than its baseline by more than allowed, as far as can be told.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct CheckArgs {
    /// the saved run that is judged
    #[argh(positional, arg_name = "candidate")]
    pub candidate: String,
    /// saved run that it is held against; repeat for several, whose spread then counts as noise: five and more speak for
    /// themselves (required)
    #[argh(option, arg_name = "run", short = 'b')]
    pub baseline: Vec<String>,
    /// most that a figure may get worse by, as in ttft_p99=10%, of shares in points, as in attainment=5%; off takes its
    /// limit away, and none alone all that are there by default; repeatable (default: ttft_p50=5%, tpot_p50=5%,
    /// attainment=5%, failed=1%, and out_tok_s=5% in closed loops and where a queue grows)
    #[argh(option, arg_name = "figure=share")]
    pub max_degradation: Vec<String>,
    /// most that TTFT p50 may get longer by, in percent (default: 5)
    #[argh(option, arg_name = "percent")]
    pub max_ttft_degradation_pct: Option<String>,
    /// most that TPOT p50 may get longer by, in percent (default: 5)
    #[argh(option, arg_name = "percent")]
    pub max_tpot_degradation_pct: Option<String>,
    /// most that output tokens per second may fall by, in percent, in every load (default: 5, in closed loops and where a
    /// queue grows)
    #[argh(option, arg_name = "percent")]
    pub max_throughput_degradation_pct: Option<String>,
    /// most that good requests per second may fall by, in percent (default: no limit, attainment has one)
    #[argh(option, arg_name = "percent")]
    pub max_goodput_degradation_pct: Option<String>,
    /// most requests of the candidate that may fail, in percent of all, whatever the baseline did (default: no limit)
    #[argh(option, arg_name = "percent")]
    pub max_error_rate_pct: Option<String>,
    /// with how many percent all intervals hold together (default: 95)
    #[argh(option, arg_name = "percent")]
    pub confidence_level: Option<String>,
    /// limits that a good request keeps, in milliseconds, as in ttft:500 tpot:50; or none (default: the candidate's own)
    #[argh(option, arg_name = "key:ms")]
    pub goodput: Vec<String>,
    /// result on standard output: table, json, github (annotations) or junit (default: table)
    #[argh(option, arg_name = "format")]
    pub format: Option<String>,
    /// exit code 1 also if it is inconclusive or something besides the server differs, 4 if a run is invalid (default:
    /// off)
    #[argh(switch)]
    pub strict: bool,
}

/// Make a run file of another tool's result file, with that tool's definitions.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct ImportArgs {
    /// the result file: of vLLM's --save-result or --append-result; aiperf's profile_export_aiperf.json or
    /// profile_export.jsonl, of which the other is looked for beside it; the output of llama-bench (jsonl, json, csv, md)
    /// or llama-batched-bench (md, jsonl); an HdrHistogram log, or its table of percentiles, .hgrm
    #[argh(positional, arg_name = "file")]
    pub file: String,
    /// whose file it is: vllm, aiperf, llama-bench, llama-batched-bench, hdrlog, hgrm or auto, told from what stands in it
    /// (default: auto)
    #[argh(option, long = "from", arg_name = "tool")]
    pub from: Option<String>,
    /// unit of the values of an HdrHistogram log or table, which does not say it: ns, us, ms or s (default: ns in a log,
    /// ms in a .hgrm)
    #[argh(option, arg_name = "unit")]
    pub unit: Option<String>,
    /// where to save the result (default: tokload-TIME.json)
    #[argh(option, arg_name = "file")]
    pub output_file: Option<String>,
    /// overwrite an existing file (default: off)
    #[argh(switch)]
    pub force: bool,
    /// result on standard output: table or json (default: table)
    #[argh(option, arg_name = "format")]
    pub format: Option<String>,
}

/// Show runs beside each other: figures with their intervals, and what differs from the first.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct CompareArgs {
    /// saved runs, the first of which the others are compared with
    #[argh(positional, arg_name = "runs")]
    pub runs: Vec<String>,
    /// with how many percent an interval holds, and all intervals of changes together (default: 95)
    #[argh(option, arg_name = "percent")]
    pub confidence_level: Option<String>,
    /// limits that a good request keeps, in milliseconds, as in ttft:500 tpot:50; or none (default: the first run's)
    #[argh(option, arg_name = "key:ms")]
    pub goodput: Vec<String>,
    /// result on standard output: table or json (default: table)
    #[argh(option, arg_name = "format")]
    pub format: Option<String>,
}

/// Look a plan over before it is run: what would make its numbers less than they seem.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct LintArgs {}

/// Serve the usual LLM APIs with set times and set faults, to test load generators with.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct MockServerArgs {
    /// address to listen on (default: 127.0.0.1)
    #[argh(option, arg_name = "address")]
    pub host: Option<String>,
    /// port to listen on, 0 for a free one, which is printed (default: 8000)
    #[argh(option, arg_name = "port")]
    pub port: Option<String>,

    /// name of the model (default: mock)
    #[argh(option, arg_name = "name", short = 'm')]
    pub model: Option<String>,
    /// names of adapters that are answered and listed as well, several after one name (default: none)
    #[argh(option, arg_name = "name...")]
    pub lora_modules: Vec<String>,
    /// longest context in tokens; a prompt has as many as it has words, each hyphen in one being two more, over all messages,
    /// or token ids (default: 131072)
    #[argh(option, arg_name = "n")]
    pub max_model_len: Option<String>,
    /// tokens that mark the beginning of a prompt that is a text, counted with it (default: 0)
    #[argh(option, arg_name = "n")]
    pub bos_tokens: Option<String>,
    /// tokens of the template that messages are put into, counted with them (default: 0)
    #[argh(option, arg_name = "n")]
    pub template_tokens: Option<String>,
    /// do not answer /tokenize (default: off)
    #[argh(switch)]
    pub no_tokenize: bool,
    /// tokens of an answer whose request does not say (default: 64)
    #[argh(option, arg_name = "n")]
    pub max_tokens: Option<String>,
    /// tokens after which an answer ends by itself, unless the request says ignore_eos and not before its min_tokens
    /// (default: none, answers end at max_tokens)
    #[argh(option, arg_name = "n")]
    pub eos_after: Option<String>,
    /// the first tokens of a chat answer that are reasoning (default: 0)
    #[argh(option, arg_name = "n")]
    pub reasoning: Option<String>,
    /// where streams hold them: reasoning_content or reasoning (default: reasoning_content)
    #[argh(option, arg_name = "name")]
    pub reasoning_field: Option<String>,
    /// answer every chat request with a tool call, not only where tool_choice demands one (default: off)
    #[argh(switch)]
    pub tool_call: bool,
    /// send token counts even if not asked for (default: off)
    #[argh(switch)]
    pub usage: bool,
    /// never send token counts (default: off)
    #[argh(switch)]
    pub no_usage: bool,
    /// when the event with the role is sent: first, with the first token; early, at once; none (default: first)
    #[argh(option, arg_name = "when")]
    pub role: Option<String>,

    /// what goes wrong, KIND or KIND:PROBABILITY per request, 1 if left out; repeatable, one draw per request decides
    /// which, so probabilities add up to 1 at most (default: nothing). Broken off in place of event N, 2 unless said:
    /// bad-json[=N], close[=N], error-event[=N], reset[=N], stall[=N], truncated-chunk[=N]. Instead of an answer:
    /// close-before, html, http-CODE, http-CODE-retry-after[=S], json-body, reset-before, silence. Something missing
    /// or wrong: empty, missing-done, missing-finish, missing-usage, wrong-type. Whole but unusual: bundle[=EVENTS]
    /// (several events per segment, 4), byte-segments (one byte per segment), comments (keep-alive lines), crlf,
    /// giant[=BYTES] (one event over a MiB), slow-headers[=TIME] (1s), split-utf8. Afterwards: close-idle[=TIME]
    /// (closed without a word after that time, 0), connection-close. In a time window since the start instead of per
    /// request: refuse@START+LENGTH (no new connections), server-down@START+LENGTH (open ones are reset, too), as in
    /// server-down@5s+3s
    #[argh(option, arg_name = "kind")]
    pub fault: Vec<String>,
    /// name of this server, sent in a header x-served-by with every answer (default: not sent)
    #[argh(option, arg_name = "name")]
    pub served_by: Option<String>,
    /// close connections that have been idle for this long, in seconds, or as 500ms (default: never)
    #[argh(option, arg_name = "s")]
    pub keep_alive: Option<String>,
    /// seed of jitter and faults, an integer (default: 0)
    #[argh(option, arg_name = "n")]
    pub seed: Option<String>,

    /// speak TLS with a certificate made at the start, signed by itself (default: off)
    #[argh(switch)]
    pub tls: bool,
    /// write that certificate here, PEM, for --cacert of `tokload run` (default: nowhere)
    #[argh(option, arg_name = "file")]
    pub tls_cert_out: Option<String>,
    /// speak TLS with this certificate chain, PEM (default: none)
    #[argh(option, arg_name = "file")]
    pub cert: Option<String>,
    /// private key of --cert, PEM (default: none)
    #[argh(option, arg_name = "file")]
    pub key: Option<String>,
    /// demand a certificate of the client that one of these roots vouches for, PEM (default: none is asked for)
    #[argh(option, arg_name = "file")]
    pub tls_client_ca: Option<String>,
    /// the only TLS version that is spoken, 1.2 or 1.3 (default: both)
    #[argh(option, arg_name = "version")]
    pub tls_version: Option<String>,
    /// hold the answer to the client's first TLS message back for so long, in seconds, or as 20ms (default: 0)
    #[argh(option, arg_name = "s")]
    pub tls_handshake_delay: Option<String>,
    /// listen on a Unix socket at this path as well, which is removed at the end (default: none)
    #[argh(option, arg_name = "path")]
    pub unix_socket: Option<String>,

    /// threads that serve (default: one per core of --cpu-affinity, else 1)
    #[argh(option, arg_name = "n")]
    pub workers: Option<String>,
    /// cores to pin the threads to, as in 0,2,4-7 (default: none)
    #[argh(option, arg_name = "cores")]
    pub cpu_affinity: Option<String>,
    /// kernel interface: auto, io_uring or epoll (default: auto)
    #[argh(option, arg_name = "driver")]
    pub driver: Option<String>,
    /// how times are kept: fd, a kernel timer; busy, a spinning core (default: fd)
    #[argh(option, arg_name = "kind")]
    pub timer: Option<String>,

    /// also write what GET /truth tells, counts and exact percentiles, to this file at the end (default: standard
    /// output only)
    #[argh(option, arg_name = "file")]
    pub truth_out: Option<String>,
    /// write one CSV line per generation request here at the end; the first million of each thread (default: none)
    #[argh(option, arg_name = "file")]
    pub dump: Option<String>,
    /// keep the accounts of single requests for GET /truth/requests (default: off)
    #[argh(switch, hidden_help)]
    pub keep_accounts: bool,
    /// stop when standard input ends, with which whoever has started this dies, too (default: off)
    #[argh(switch, hidden_help)]
    pub until_stdin_closes: bool,
}

/// Run a plan against a modelled server in virtual time, or find the model of a measured one.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct SimulateArgs {
    /// find the highest load at which enough requests keep their limits, as tokload find-capacity does (default: off)
    #[argh(switch)]
    pub find_capacity: bool,
    /// estimate the costs of a server from a saved run of several numbers of users, print them and end (default: off)
    #[argh(option, arg_name = "run")]
    pub fit: Option<String>,
    /// also say in plain words why the curve bends, with Little's law line by line (default: off)
    #[argh(switch)]
    pub explain: bool,
    /// longest context of the server in tokens: a prompt that does not fit in with its answer is refused (default: none)
    #[argh(option, arg_name = "n")]
    pub max_model_len: Option<String>,
    /// seed of all prompts, gaps, noise and jitter, an integer (default: 0, so that a command repeats its numbers)
    #[argh(option, arg_name = "n")]
    pub seed: Option<String>,
}

/// Measure this client's own error on this machine, and up to which load it stays small.
#[derive(ArgsInfo, Clone, Debug, Default, FromArgs, PartialEq)]
pub struct SelftestArgs {
    /// take 10 seconds instead of 60 at most: fewer values, and hardly a search for the largest load (default: off)
    #[argh(switch)]
    pub quick: bool,
    /// time for everything, in seconds (default: 60)
    #[argh(option, hidden_help, arg_name = "s")]
    pub budget: Option<String>,
    /// do not store the result, which tokload run quotes (default: off)
    #[argh(switch)]
    pub no_save: bool,
    /// result on standard output: table or json (default: table)
    #[argh(option, arg_name = "format")]
    pub format: Option<String>,
    /// no progress (default: off)
    #[argh(switch, short = 'q')]
    pub quiet: bool,
}

/// What was typed for `simulate`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimulateWords {
    /// The options of its own.
    pub own: SimulateArgs,
    /// The server.
    pub server: ModelArgs,
    /// The search, with `--find-capacity`.
    pub search: FindCapacityArgs,
    /// The plan, by the options of `run`; those that are not for a simulation are refused before, and the seed is
    /// among its own.
    pub plan: RunArgs,
}

/// What was typed for `find-capacity`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FindCapacityWords {
    /// The search.
    pub own: FindCapacityArgs,
    /// The plan, by the options of `run`.
    pub plan: RunArgs,
}

/// What was typed for `lint`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LintWords {
    /// The options of its own: none yet.
    pub own: LintArgs,
    /// The plan, by the options of `run`.
    pub plan: RunArgs,
}

/// What was typed for `mock-server`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MockServerWords {
    /// The options of its own.
    pub own: MockServerArgs,
    /// The server behind the socket.
    pub server: ModelArgs,
}

/// A command with what was typed for it.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `find-capacity`
    FindCapacity(Box<FindCapacityWords>),
    /// `check`
    Check(Box<CheckArgs>),
    /// `compare`, also as `compare-models`
    Compare(CompareArgs),
    /// `lint`
    Lint(Box<LintWords>),
    /// `import`
    Import(ImportArgs),
    /// `merge`
    Merge(MergeArgs),
    /// `mock-server`
    MockServer(Box<MockServerWords>),
    /// `quick`
    Quick(Box<QuickArgs>),
    /// `report`
    Report(Box<ReportArgs>),
    /// `run`, under whatever name
    Run(Box<RunArgs>),
    /// `selftest`
    Selftest(SelftestArgs),
    /// `share`
    Share(ShareArgs),
    /// `simulate`
    Simulate(Box<SimulateWords>),
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// To do something.
    Command {
        /// What.
        command: Command,
        /// Whose command line it is: its defaults apply.
        tool: Tool,
        /// Remarks on options that were understood differently from what they say; for standard error.
        notes: Vec<String>,
    },
    /// To print this text on standard output and to end well: help or the version.
    Text(String),
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// Unknown commands and options, missing and doubled values: exit code
/// [`BadArguments`](super::exit::Exit::BadArguments).
pub fn parse(argv: impl IntoIterator<Item = OsString>) -> Result<Asked, Error> {
    let words = argv.into_iter().map(|word| {
        word.into_string().map_err(|word| {
            Error::new("tokload", format!("{word:?} is not UTF-8"), "write arguments in UTF-8")
        })
    });
    let words: Vec<String> = words.collect::<Result<_, _>>()?;
    match normalise::normalise(&words)? {
        Normal::Text(text) => Ok(Asked::Text(text)),
        Normal::Command { name, tool, args, notes } => {
            let command = match name {
                Name::FindCapacity => Command::FindCapacity(Box::new(FindCapacityWords {
                    own: by_argh(name, &args, 0)?,
                    plan: by_argh(name, &args, 1)?,
                })),
                Name::Check => Command::Check(Box::new(by_argh(name, &args, 0)?)),
                Name::Compare => Command::Compare(by_argh(name, &args, 0)?),
                Name::Lint => Command::Lint(Box::new(LintWords {
                    own: by_argh(name, &args, 0)?,
                    plan: by_argh(name, &args, 1)?,
                })),
                Name::Import => Command::Import(by_argh(name, &args, 0)?),
                Name::Merge => Command::Merge(by_argh(name, &args, 0)?),
                Name::Share => Command::Share(by_argh(name, &args, 0)?),
                Name::MockServer => Command::MockServer(Box::new(MockServerWords {
                    own: by_argh(name, &args, 0)?,
                    server: by_argh(name, &args, 1)?,
                })),
                Name::Quick => Command::Quick(Box::new(by_argh(name, &args, 0)?)),
                Name::Report => Command::Report(Box::new(by_argh(name, &args, 0)?)),
                Name::Run => Command::Run(Box::new(by_argh(name, &args, 0)?)),
                Name::Selftest => Command::Selftest(by_argh(name, &args, 0)?),
                Name::Simulate => Command::Simulate(Box::new(SimulateWords {
                    own: by_argh(name, &args, 0)?,
                    server: by_argh(name, &args, 1)?,
                    search: by_argh(name, &args, 2)?,
                    plan: by_argh(name, &args, 3)?,
                })),
            };
            Ok(Asked::Command { command, tool, notes })
        }
    }
}

/// Reads the words of one part of a command, a place in [`Name::parts`].
fn by_argh<T: FromArgs>(name: Name, args: &[Vec<String>], part: usize) -> Result<T, Error> {
    let args: Vec<&str> = args.get(part).into_iter().flatten().map(String::as_str).collect();
    T::from_args(&["tokload", name.as_str()], &args).map_err(|exit| {
        // Options were checked before; what is left is a missing or an extra word.
        let wrong = exit.output.split_whitespace().collect::<Vec<_>>().join(" ");
        let subject = format!("tokload {}", name.as_str());
        let remedy = format!("see `tokload {} --help`", name.as_str());
        Error::new(subject, lower_first(&wrong), remedy)
    })
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
