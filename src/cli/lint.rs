//! `lint`: a plan looked over before anything is sent; and the same at the start of a run.

use super::aliases::Tool;
use super::args::LintWords;
use super::exit::Exit;
use super::failure::Failure;
use super::own_words::{in_words, spelled};
use super::plan_from_args::Order;
use super::run::{order, terminal_style};
use super::value::Format;
use super::{print, proxies, say, script, session, target, with_stdout};
use crate::load::Route;
use crate::plan::lint::{Surroundings, lint};
use crate::plan::{Grade, Plan};
use crate::report::{json, terminal, view};
use crate::run_file::schema::FindingBlock;
use crate::sys::clock::RunClock;
use crate::sys::socket::Peer;
use crate::sys::usage::Ports;
use crate::verdict::Verdict;

/// Prints what can be said of the plan. Names are resolved, nothing is sent.
pub(super) fn main(words: &LintWords, tool: Tool) -> Result<Exit, Failure> {
    let Order { plan, secrets, output, strict, notes, .. } = order(&words.plan, tool, &RunClock::start())?;
    if !output.quiet {
        notes.iter().for_each(|note| say(note));
    }
    // A file that cannot be sent is no finding: nothing would be measured.
    let script = script::look(&plan)?;
    if let Some(script) = script.as_ref().filter(|_| !output.quiet) {
        script::notes(&plan, script).iter().for_each(|note| say(note));
    }
    let routes = target::routes(&plan, &secrets).unwrap_or_else(|failure| {
        // Where the server is cannot be said from here; what is wrong with the plan can.
        say(&failure.to_string());
        Vec::new()
    });
    match session::ports::check(&plan, &routes, &Ports::read()) {
        Ok(None) => {}
        Ok(Some(note)) => say(&note),
        Err(failure) => say(&failure.to_string()),
    }
    let around = Surroundings {
        longest_prompt: script::longest_prompt(script.as_ref()),
        ..surroundings(&plan, &routes, None)
    };
    let findings = lint(&plan, &around).into_iter().map(FindingBlock::from);
    let findings: Vec<FindingBlock> = findings.map(|finding| in_words(tool, finding)).collect();
    let verdict = Verdict::of(findings.iter().map(|finding| finding.grade));
    match output.format {
        Format::Json => with_stdout(|mut out| json::write_findings(&findings, verdict, &mut out))?,
        Format::Table => {
            let (verdict, notes) = view::of_plan(&findings, verdict);
            with_stdout(|mut out| terminal::write_notes(&notes, terminal_style(), &mut out))?;
            print(&verdict)?;
        }
    }
    Ok(if strict && verdict == Verdict::Invalid { Exit::NotValid } else { Exit::Done })
}

/// What is wrong with a plan that is about to be run, one line each.
pub(super) fn warnings(plan: &Plan, around: &Surroundings, tool: Tool) -> Vec<String> {
    let findings = lint(plan, around);
    let grave = findings.iter().filter(|finding| finding.grade > Grade::Info);
    grave.map(|finding| spelled(tool, &finding.to_string())).collect()
}

/// What is around a plan whose endpoints are `routes`; `via` is the field of an answer.
pub(super) fn surroundings(plan: &Plan, routes: &[Route], via: Option<String>) -> Surroundings {
    Surroundings {
        simulated: false,
        addresses: routes.iter().flat_map(|route| &route.addresses).filter_map(Peer::ip).collect(),
        server_on_this_host: routes.iter().any(Route::is_on_this_host),
        proxies: proxies::ignored(plan),
        via,
        same_prompts_at: None,
        context_tokens: None,
        longest_prompt: None,
    }
}

/// Why `option`, one of those of `run`, is not for looking a plan over, and what to do instead.
pub(super) fn refusal(option: &str) -> Option<(&'static str, &'static str)> {
    let prints = ["--dry-run", "--print-config"].contains(&option);
    prints.then_some(("prints the plan instead of looking it over", "give it to tokload run"))
}
