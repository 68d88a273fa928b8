//! The sessions of agents of a trace: in which order they begin, and what a look through them finds.

use super::{Overview, Refusal};
use crate::workload::reuse::Blocks;
use crate::workload::trace::{Agents, Entry, Input, Options, Selection};

/// The sessions in the order in which they are sent.
#[derive(Debug)]
pub(super) struct Course {
    agents: Agents,
    order: Box<[u32]>,
}

impl Course {
    /// Looks through the file. Each session's clock begins with its first request: the slice is cut out of each of them.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(super) fn of(
        file: &str,
        input: &mut dyn Input,
        options: &Options,
        selection: &Selection,
    ) -> Result<(Course, Overview), Refusal> {
        let mut look = Look::new(selection);
        let mut keeps = |entry: &Entry, at_ns| look.keeps(entry, at_ns);
        let agents = Agents::of(file, input, options, &mut keeps).map_err(Refusal::Record)?;
        if agents.is_empty() {
            return Err(Refusal::Nothing);
        }
        let at = |session: u32| agents.when(session as usize, 0).map_or(0, |when| when.at_ns);
        let mut order: Vec<u32> = (0..agents.len() as u32).collect();
        // A stable sort: those that begin at one time keep the order of the file.
        order.sort_by_key(|session| at(*session));
        let overview = look.found(&agents);
        Ok((Course { agents, order: order.into() }, overview))
    }

    pub(super) fn agents(&self) -> &Agents {
        &self.agents
    }

    /// The session that is sent as number `index`.
    pub(super) fn session(&self, index: u64) -> Option<usize> {
        self.order.get(usize::try_from(index).ok()?).map(|session| *session as usize)
    }
}

/// What is found on the way.
struct Look<'s> {
    selection: &'s Selection,
    overview: Overview,
    kept: u64,
    blocks: Blocks,
    found_tokens: u64,
}

impl<'s> Look<'s> {
    fn new(selection: &'s Selection) -> Look<'s> {
        let overview = Overview::none(crate::workload::trace::Format::Weka);
        Look { selection, overview, kept: 0, blocks: Blocks::default(), found_tokens: 0 }
    }

    fn keeps(&mut self, entry: &Entry, at_ns: u64) -> bool {
        let mut sent = entry.clone();
        match self.selection.choose(&mut sent, Some(at_ns), &mut self.overview.dropped) {
            false => return false,
            true => self.kept += 1,
        }
        self.overview.last_ns = self.overview.last_ns.max(self.selection.recorded_at(at_ns));
        self.overview.count_prompt(&sent);
        if let Some((_, found)) = self.blocks.found(&sent) {
            self.found_tokens += u64::from(found);
        }
        true
    }

    fn found(self, agents: &Agents) -> Overview {
        let Look { overview, kept, blocks, found_tokens, .. } = self;
        Overview {
            counts: agents.counts.clone(),
            requests: agents.len() as u64,
            later: kept - agents.beyond - agents.len() as u64,
            turns: agents.beyond,
            of_agents: true,
            found_tokens: blocks.knows_all().then_some(found_tokens),
            ..overview
        }
    }
}
