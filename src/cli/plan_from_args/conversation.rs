//! Sessions of several turns, by the options of every tool.

use super::lengths::{deviation, varying_around};
use super::{RunArgs, trace, value};
use crate::plan::{Conversation, Distribution, Error, Lengths, Replies, Timing, TurnShares, Workload};
use crate::workload::trace::Format;

/// Sets the conversations of `workload`, or changes those of the file.
///
/// - `--multi-turn`, a number of turns other than 1, or a file of conversations by its name asks for them.
/// - Everything else says how they go, and means nothing without.
pub(super) fn set(args: &RunArgs, workload: &mut Workload) -> Result<(), Error> {
    if args.session_header.is_some() {
        workload.session_header.clone_from(&args.session_header);
    }
    if let Some(text) = &args.user_context_prompt_length {
        let words: u32 = value::integer("--user-context-prompt-length", text)?;
        workload.context_words = (words > 0).then_some(words);
    }
    let is_bounded = bound_turns(args, workload)?;
    let turns = turns(args, workload.data.is_some())?;
    let asked = args.multi_turn
        || is_bounded
        || turns.as_ref().is_some_and(|turns| turns.fixed() != Some(1))
        || names_conversations(args);
    if asked && workload.conversation.is_none() {
        workload.conversation = Some(Conversation::default());
    }
    if !asked && turns.is_some() {
        // One turn each is what other tools write for no conversations.
        workload.conversation = None;
    }
    timing(args, workload)?;
    let has_file = workload.data.is_some() || workload.trace.is_some() || args.dataset_path.is_some();
    let Some(conversation) = &mut workload.conversation else {
        return without(args, workload.trace.is_some() || trace::is_asked(args));
    };
    if let Some(turns) = turns {
        conversation.turns = turns;
    }
    let delay = "--multi-turn-delay-ms";
    value::set(&mut conversation.delay_ms, delay, &args.multi_turn_delay_ms, value::lengths)?;
    if let Some(text) = &args.session_turn_delay_stddev {
        let option = "--session-turn-delay-stddev";
        let spread = deviation(option, text)?;
        conversation.delay_ms = varying_around(option, &conversation.delay_ms, spread, Some(0))?;
    }
    value::set(
        &mut conversation.delay_ratio,
        "--session-delay-ratio",
        &args.session_delay_ratio,
        value::number,
    )?;
    if let Some(shares) = shares(args)? {
        conversation.shares = (shares != TurnShares { all: 0.0, session: 0.0 }).then_some(shares);
    }
    if args.ignore_trace_delays {
        conversation.delay_ratio = 0.0;
    }
    if let Some(text) = &args.inter_turn_delay_cap_seconds {
        conversation.delay_max_s = Some(value::seconds("--inter-turn-delay-cap-seconds", text)?);
    }
    if let Some(text) = &args.per_turn_input_len {
        let words = value::lengths("--per-turn-input-len", text)?;
        // vLLM's 0: as the first turn.
        conversation.later_words = (words.fixed() != Some(0)).then_some(words);
    }
    value::set(&mut conversation.replies, "--replies", &args.replies, replies)?;
    if args.replies.is_some() && conversation.replies == Replies::Recorded && !has_file {
        let remedy = "give --dataset-path FILE, or live";
        return Err(Error::new("--replies", "recorded are those of a data set, and there is none", remedy));
    }
    Ok(())
}

/// By which times recorded sessions go.
fn timing(args: &RunArgs, workload: &mut Workload) -> Result<(), Error> {
    let option = "--timing-strategy";
    if let Some(text) = &args.timing_strategy {
        workload.timing = Some(match text.as_str() {
            "think-only" => Timing::ThinkOnly,
            "original" => Timing::Original,
            _ => {
                let remedy = "give think-only, or original for the times of the file";
                return Err(Error::new(
                    option,
                    format!("'{text}' is neither think-only nor original"),
                    remedy,
                ));
            }
        });
    }
    if args.use_think_time_only {
        if workload.timing.replace(Timing::ThinkOnly) == Some(Timing::Original) {
            let remedy = "give one of them";
            return Err(Error::new("--use-think-time-only", "contradicts --timing-strategy", remedy));
        }
        if args.ignore_trace_delays {
            let remedy = "give one of them";
            return Err(Error::new("--use-think-time-only", "contradicts --ignore-trace-delays", remedy));
        }
    }
    if args.ignore_trace_delays && args.session_delay_ratio.is_some() {
        let remedy = "give one of them: it is a ratio of 0";
        return Err(Error::new("--ignore-trace-delays", "contradicts --session-delay-ratio", remedy));
    }
    Ok(())
}

/// Bounds the turns of a data set's conversations, where an option does; whether one did. The most is as in vLLM, which
/// cuts conversations off there and takes no notice of the fewest.
fn bound_turns(args: &RunArgs, workload: &mut Workload) -> Result<bool, Error> {
    let Some(data) = &mut workload.data else { return Ok(false) };
    let filter = &mut data.filter;
    for (option, text, place) in [
        ("--multi-turn-min-turns", &args.multi_turn_min_turns, &mut filter.turns_min),
        ("--multi-turn-max-turns", &args.multi_turn_max_turns, &mut filter.turns_max),
    ] {
        if let Some(text) = text {
            *place = Some(value::integer::<u32>(option, text)?).filter(|turns| *turns > 0);
        }
    }
    Ok(filter.turns_min.is_some() || filter.turns_max.is_some())
}

/// The number of turns, if an option says.
fn turns(args: &RunArgs, has_file: bool) -> Result<Option<Lengths>, Error> {
    let option = "--multi-turn-num-turns";
    let given = args.multi_turn_num_turns.as_deref().map(|text| value::lengths(option, text)).transpose()?;
    let given = range(args, given.as_ref(), has_file)?.or(given);
    let Some(text) = &args.session_turns_stddev else { return Ok(given) };
    let option = "--session-turns-stddev";
    let spread = deviation(option, text)?;
    if spread == 0.0 {
        return Ok(given);
    }
    let around = given.unwrap_or(Lengths::Fixed(1));
    varying_around(option, &around, spread, None).map(Some)
}

/// The number of turns as a range, each end of which is that of `--multi-turn-num-turns` if it is not given, as in vLLM.
fn range(args: &RunArgs, given: Option<&Lengths>, has_file: bool) -> Result<Option<Lengths>, Error> {
    if has_file {
        return Ok(None);
    }
    let end = |option: &str, text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => value::integer::<u32>(option, text).map(|turns| (turns > 0).then_some(turns)),
    };
    let (least, most) = ("--multi-turn-min-turns", "--multi-turn-max-turns");
    let ends = (end(least, &args.multi_turn_min_turns)?, end(most, &args.multi_turn_max_turns)?);
    if ends == (None, None) {
        return Ok(None);
    }
    let option = if ends.0.is_some() { least } else { most };
    if args.trace.is_some() {
        let remedy = "leave it out: the turns of a trace are the trace's";
        return Err(Error::new(option, "draws numbers of turns, and a trace has its own", remedy));
    }
    let usual = match given {
        None => Conversation::default().turns.fixed(),
        Some(given) => given.fixed(),
    };
    let drawn = || {
        let remedy = "give --multi-turn-num-turns a number, or leave it out";
        Error::new(option, "is the end of a range around a number that is drawn itself", remedy)
    };
    let (Some(min), Some(max)) = (ends.0.or(usual), ends.1.or(usual)) else { return Err(drawn()) };
    if min > max {
        let wrong = format!("nothing lies between {min} and {max} turns");
        return Err(Error::new(option, wrong, "give both ends, the smaller one as the fewest"));
    }
    Ok(Some(if min == max {
        Lengths::Fixed(min)
    } else {
        Lengths::Drawn(Distribution::Uniform { min, max })
    }))
}

/// What turns have in common, if an option says.
fn shares(args: &RunArgs) -> Result<Option<TurnShares>, Error> {
    let share = |option: &str, text: &Option<String>| match text {
        None => Ok(0.0),
        Some(text) => super::share(option, text),
    };
    let (all, session) = (&args.multi_turn_prefix_global_ratio, &args.multi_turn_prefix_conversation_ratio);
    if all.is_none() && session.is_none() {
        return Ok(None);
    }
    let all = share("--multi-turn-prefix-global-ratio", all)?;
    Ok(Some(TurnShares { all, session: share("--multi-turn-prefix-conversation-ratio", session)? }))
}

/// Whether the data set is of conversations by its name.
fn names_conversations(args: &RunArgs) -> bool {
    let names = [&args.trace_format, &args.dataset_name];
    let is_named = names
        .into_iter()
        .flatten()
        .filter_map(|name| Format::from_name(name))
        .any(|format| matches!(format, Format::AiperfMultiTurn | Format::Weka));
    is_named && args.dataset_path.is_some() && !super::trace::is_asked(args)
}

fn replies(option: &str, text: &str) -> Result<Replies, Error> {
    match text {
        "live" => Ok(Replies::Live),
        "recorded" => Ok(Replies::Recorded),
        _ => {
            let remedy = "give live, or recorded for those of the data set";
            Err(Error::new(option, format!("'{text}' is neither live nor recorded"), remedy))
        }
    }
}

/// Refuses what says how conversations go, where there are none; a trace may have sessions with pauses of their own.
fn without(args: &RunArgs, has_trace: bool) -> Result<(), Error> {
    let zero = |text: &Option<String>| text.as_deref().is_none_or(|text| text.trim().parse() == Ok(0.0));
    let one = |text: &Option<String>| text.as_deref().is_none_or(|text| text.trim().parse() == Ok(1.0));
    for (option, is_nothing) in [
        ("--multi-turn-delay-ms", zero(&args.multi_turn_delay_ms)),
        ("--session-turn-delay-stddev", zero(&args.session_turn_delay_stddev)),
        ("--session-delay-ratio", has_trace || one(&args.session_delay_ratio)),
        ("--per-turn-input-len", zero(&args.per_turn_input_len)),
        ("--replies", args.replies.is_none()),
        ("--inter-turn-delay-cap-seconds", has_trace || args.inter_turn_delay_cap_seconds.is_none()),
        ("--ignore-trace-delays", has_trace || !args.ignore_trace_delays),
        ("--multi-turn-prefix-global-ratio", zero(&args.multi_turn_prefix_global_ratio)),
        ("--multi-turn-prefix-conversation-ratio", zero(&args.multi_turn_prefix_conversation_ratio)),
    ] {
        if !is_nothing {
            let remedy = "give --multi-turn as well, or leave it out";
            return Err(Error::new(option, "says how conversations go, and there are none", remedy));
        }
    }
    Ok(())
}
