//! The file of a plan's requests, a trace or a data set: opened, looked through, and told of.

use std::fs::File;
use std::io::{BufReader, Cursor, Read as _};
use std::sync::Arc;

use super::failure::Failure;
use super::parquet_file;
use super::text_file::regular;
use crate::api::Dialect;
use crate::api::talk::History;
use crate::plan::{LengthRule, Plan};
use crate::run_file::schema::{DataBlock, TraceBlock};
use crate::workload::deck::Contents;
use crate::workload::recording::{Open, Refusal};
use crate::workload::trace::{Format, Input};
use crate::workload::{Deck, Recording, Script};

/// What is stored of a file of requests.
#[derive(Clone, Debug, Default)]
pub(super) struct ScriptBlocks {
    pub(super) trace: Option<TraceBlock>,
    pub(super) data: Option<DataBlock>,
}

impl ScriptBlocks {
    pub(super) fn of(script: Option<&Script>) -> ScriptBlocks {
        match script {
            None => ScriptBlocks::default(),
            Some(Script::Data(deck)) => {
                ScriptBlocks { data: Some(deck.contents().into()), ..ScriptBlocks::default() }
            }
            Some(Script::Trace(recording)) => {
                ScriptBlocks { trace: Some(recording.overview().into()), ..ScriptBlocks::default() }
            }
        }
    }
}

/// Looks through the file that `plan` takes requests from, if it takes them from one.
pub(super) fn look(plan: &Plan) -> Result<Option<Script>, Failure> {
    let (option, file, look) = if let Some(trace) = &plan.workload.trace {
        let look = Recording::look(trace, opener("--trace", &trace.file, None)?);
        let look = look.map(|recording| (recording.overview().chats, Script::Trace(Arc::new(recording))));
        ("--trace", &trace.file, look)
    } else if let Some(data) = &plan.workload.data {
        let open = opener("--dataset-path", &data.file, data.column.as_deref())?;
        let look = if plan.workload.conversation.is_some() {
            Deck::look_for_sessions(data, plan.target.request_path(), open)
        } else {
            Deck::look(data, plan.target.request_path(), open)
        };
        let look = look.map(|deck| (deck.contents().chats, Script::Data(Arc::new(deck))));
        ("--dataset-path", &data.file, look)
    } else {
        return Ok(None);
    };
    let look = look.and_then(|(chats, script)| {
        let has_offsets = match &script {
            Script::Data(deck) => deck.agents().is_some(),
            Script::Trace(recording) => recording.agents().is_some(),
        };
        let asks_for_offsets = plan.workload.timing.is_some();
        let has_pauses = match &script {
            Script::Data(_) => true,
            Script::Trace(recording) => has_offsets || recording.has_sessions(),
        };
        if plan.workload.trace.as_ref().is_some_and(|trace| trace.changes_delays()) && !has_pauses {
            return Err(Refusal::NoPauses);
        }
        if asks_for_offsets && !has_offsets { Err(Refusal::NoOffsets) } else { Ok((chats, script)) }
    });
    let (chats, script) = look.map_err(|refusal| match refusal {
        Refusal::Nothing if is_blank(file) => {
            Failure::bad(format!("{option} {file}: the file is empty; name one that has requests"))
        }
        refusal => Failure::bad(format!("{option} {file}: {refusal}")),
    })?;
    if chats > 0 && !History::is_list(plan.target.dialect) {
        return Err(Failure::bad(format!(
            "{option} {file}: {chats} of its requests are chats, which the API {} cannot ask; use --backend openai-chat",
            plan.target.dialect.name()
        )));
    }
    let bodies = match &script {
        Script::Data(deck) => deck.contents().bodies,
        Script::Trace(recording) => recording.overview().bodies,
    };
    let dialect = plan.target.dialect;
    if let Some((n, field)) = bodies.for_others(dialect.prompt_field()).filter(|_| dialect != Dialect::Raw) {
        let other = Dialect::ALL.into_iter().find(|other| other.prompt_field() == field);
        return Err(Failure::bad(format!(
            "{option} {file}: {n} of its ready bodies have `{field}`, and the API {} takes `{}`; use --backend {}",
            dialect.name(),
            dialect.prompt_field(),
            other.unwrap_or_default().name()
        )));
    }
    Ok(Some(script))
}

/// Tokens of the longest request of a file, where it gives lengths.
pub(super) fn longest_prompt(script: Option<&Script>) -> Option<u32> {
    match script? {
        Script::Data(deck) => deck.contents().longest_prompt,
        Script::Trace(recording) => recording.overview().longest_prompt,
    }
}

/// Opens a file whenever a shard wants to read it. One in Parquet is read once, and its rows are kept as JSON lines.
fn opener(option: &str, file: &str, column: Option<&str>) -> Result<Open, Failure> {
    let path = file.to_owned();
    regular(file).map_err(|error| Failure::bad(format!("{option} {file}: {error}")))?;
    if parquet_file::is_one(file) {
        let lines = parquet_file::json_lines(file, column);
        let lines: Arc<[u8]> =
            lines.map_err(|error| Failure::bad(format!("{option} {file}: {error}")))?.into();
        return Ok(Box::new(move || Ok(Box::new(Cursor::new(Arc::clone(&lines))) as Box<dyn Input + Send>)));
    }
    Ok(Box::new(move || {
        let input = BufReader::with_capacity(READ_BYTES, File::open(&path)?);
        Ok(Box::new(input) as Box<dyn Input + Send>)
    }))
}

/// Whether there is nothing in a file but space.
fn is_blank(file: &str) -> bool {
    let mut beginning = Vec::new();
    let read = File::open(file).and_then(|file| file.take(BLANK_BYTES).read_to_end(&mut beginning));
    read.is_ok() && beginning.len() < BLANK_BYTES as usize && beginning.trim_ascii().is_empty()
}

/// What the user should know of the file of `plan`, one line each.
pub(super) fn notes(plan: &Plan, script: &Script) -> Vec<String> {
    let (mut notes, counts) = match script {
        Script::Data(deck) => (notes_of_data(plan, deck.contents()), &deck.contents().counts),
        Script::Trace(recording) => (vec![recording.overview().to_string()], &recording.overview().counts),
    };
    notes.extend(counts.first_errors.iter().map(|error| format!("left out: {error}")));
    notes
}

fn notes_of_data(plan: &Plan, contents: &Contents) -> Vec<String> {
    let mut notes = vec![contents.to_string()];
    let Contents { prompts, later, turns, timed, lengths_said, lengths_estimated, .. } = *contents;
    let recorded = plan.workload.data.as_ref().is_some_and(|data| data.lengths == LengthRule::Recorded);
    if recorded && lengths_estimated > 0 {
        notes.push(format!(
            "lengths of {lengths_estimated} answers are estimated from their recorded texts, four tokens for three words; \
             --random-output-len sets them"
        ));
    }
    let unsaid = prompts + later - lengths_said - lengths_estimated;
    if recorded && unsaid > 0 && unsaid < prompts + later {
        let length = &plan.workload.output_tokens;
        notes.push(format!("the data set says no length of {unsaid} answers: they have {length} tokens"));
    }
    if let Some(data) = &plan.workload.data {
        if data.compat.is_some() && [Format::ShareGpt, Format::BurstGpt].contains(&contents.format) {
            notes.push(
                "prompts are chosen by the rules of vLLM; lengths of texts are estimated, four tokens for three words, where \
                 vLLM has a tokenizer count them"
                    .to_owned(),
            );
        }
        if !data.filter.is_empty() {
            notes.push(
                "lengths of texts are estimated for the filter, four tokens for three words".to_owned(),
            );
        }
    }
    if turns > 0 {
        notes.push("--multi-turn sends the later turns too".to_owned());
    }
    if timed > 0 {
        notes.push(
            "the file has times, which are not kept; --fixed-schedule sends its requests at them".to_owned(),
        );
    }
    let most = plan.levels.iter().filter_map(|level| level.requests_expected()).max();
    // A session of agents that comes again has other words.
    if let Some(most) = most.filter(|most| *most > prompts && contents.agents.is_none()) {
        notes.push(format!(
            "warning: {most} {} take {prompts} {}, again and again: a prefix cache may answer; give a larger file or fewer \
             of them",
            if later > 0 { "sessions" } else { "requests" },
            if later > 0 { "conversations" } else { "prompts" }
        ));
    }
    notes
}

/// A file of more than that is more than space.
const BLANK_BYTES: u64 = 4096;
const READ_BYTES: usize = 256 << 10;
