//! The sessions of agents of one shard that are under way: which of their requests are planned, and what waits for whom.
//!
//! A request goes when all the answers that it waits for have ended: a sub-agent with the answer that started it, beside
//! its parent and the others, and the parent again when those that it waits for are through. Each prompt is whole in the
//! file, so that nothing of an answer is kept, and bodies depend on no answer.
//!
//! Prompts of agents are long. So what is planned is written ahead by its time, as much as an open loop writes; the rest
//! is a few numbers for each request, and read when it is wanted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::load::agenda::Due;
use crate::load::leg::Leg;
use crate::load::requests::{AHEAD_BYTES, Follow, Next, Written, hashed, place_of};
use crate::load::source::Source;
use crate::load::target::Desk;
use crate::metrics::{Class, Record};
use crate::plan::Timing;
use crate::run::Sessions;
use crate::time::Stamp;
use crate::workload::recording::Sends;
use crate::workload::trace::{Agents, Entry, When};

/// The sessions of one shard in one leg.
#[derive(Debug)]
pub(crate) struct Teams {
    leg: Arc<Leg>,
    source: Source,
    /// By the index of the session.
    open: HashMap<u64, Team>,
    /// Planned and not written, first those that go first.
    unwritten: BTreeSet<Key>,
    ahead: BTreeMap<Key, Written>,
    ahead_bytes: usize,
    counts: Sessions,
}

/// A planned request: from when it may be sent, its session, its number.
type Key = (Stamp, u64, u16);

/// A session that is under way.
#[derive(Debug)]
struct Team {
    /// Which of the file it is.
    session: usize,
    requests: u16,
    /// When its first request was planned, and from when it could be sent.
    begun: (Stamp, Stamp),
    /// Requests that are planned and have not ended.
    outstanding: usize,
    /// Requests that were sent, or planned in time and never sent.
    taken: u64,
    answered: u16,
    end: Option<End>,
    /// By number, requests that wait for several answers, of which some have ended.
    joins: HashMap<u16, Join>,
}

/// Why nothing more of a session is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Broken,
    Cut,
}

/// What a request still waits for.
#[derive(Clone, Copy, Debug)]
struct Join {
    left: usize,
    /// The last end of an answer so far.
    latest: Stamp,
}

impl Teams {
    /// No session yet; `recorded` are the requests of a trace, where it is one that is sent.
    pub(crate) fn new(leg: Arc<Leg>, recorded: Option<&Sends>) -> Teams {
        Teams {
            source: Source::of(&leg, recorded),
            leg,
            open: HashMap::new(),
            unwritten: BTreeSet::new(),
            ahead: BTreeMap::new(),
            ahead_bytes: 0,
            counts: Sessions::default(),
        }
    }

    /// The first request of a session is sent; `entry` is what it was written from.
    pub(crate) fn on_begin(&mut self, due: &Due, entry: Option<&Entry>) {
        self.source.on_begin(due.index, entry);
        let (Some(agents), Some(session)) =
            (self.leg.target.content.agents(), self.source.agents_session(&self.leg, due.index))
        else {
            return;
        };
        self.counts.begun += 1;
        let team = Team {
            session,
            requests: agents.requests(session),
            begun: (due.plan, due.ready),
            outstanding: 1,
            taken: 1,
            answered: 0,
            end: None,
            joins: HashMap::new(),
        };
        self.open.insert(due.index, team);
    }

    /// The requests beside the first one that wait for no answer: they go with the beginning of their session.
    pub(crate) fn beside(&mut self, index: u64) -> Vec<(u16, Next)> {
        let leg = Arc::clone(&self.leg);
        let (Some(agents), Some(team)) = (leg.target.content.agents(), self.open.get(&index)) else {
            return Vec::new();
        };
        let roots: Vec<u16> = agents.roots(team.session).filter(|number| *number > 0).collect();
        roots.into_iter().filter_map(|number| self.planned(agents, (index, number), None)).collect()
    }

    /// The request of `due` has ended.
    pub(crate) fn on_end(&mut self, due: &Due, record: &Record) -> Follow {
        let leg = Arc::clone(&self.leg);
        let (Some(agents), Some(team)) = (leg.target.content.agents(), self.open.get_mut(&due.index)) else {
            return Follow { is_over: true, ..Follow::default() };
        };
        team.outstanding -= 1;
        let mut follow = Follow::default();
        if record.outcome.is_ok() {
            team.answered += 1;
            let goes_on = team.end.is_none();
            let ready = if goes_on { team.freed(agents, due.turn, record.end) } else { Vec::new() };
            let planned = ready.into_iter();
            follow.next = planned
                .filter_map(|(number, end)| self.planned(agents, (due.index, number), Some(end)))
                .collect();
        } else {
            let is_cut = matches!(record.outcome.class, Class::Unfinished | Class::Cancelled);
            team.end.get_or_insert(if is_cut { End::Cut } else { End::Broken });
            self.forget_planned(due.index);
            follow.withdraws = true;
        }
        follow.is_over = self.close_if_over(due.index);
        follow
    }

    /// So many planned requests of a session were taken back; whether it is over.
    pub(crate) fn on_withdrawn(&mut self, index: u64, requests: usize) -> bool {
        if let Some(team) = self.open.get_mut(&index) {
            team.outstanding -= requests;
        }
        self.close_if_over(index)
    }

    /// A request that was planned is never sent.
    pub(crate) fn on_unsent(&mut self, due: &Due) {
        let Some(team) = self.open.get_mut(&due.index) else { return };
        team.outstanding -= 1;
        team.taken += 1;
        team.end.get_or_insert(End::Cut);
        self.forget_written(&(due.ready, due.index, due.turn));
        self.close_if_over(due.index);
    }

    /// Counts a session of which nothing is planned or under way. Whether it is over.
    fn close_if_over(&mut self, index: u64) -> bool {
        if self.open.get(&index).is_some_and(|team| team.outstanding > 0) {
            return false;
        }
        if let Some(team) = self.open.remove(&index) {
            self.source.forget(index);
            self.count(&team);
        }
        true
    }

    fn count(&mut self, team: &Team) {
        let unsent = u64::from(team.requests) - team.taken.min(team.requests.into());
        match team.end {
            None if team.answered == team.requests => self.counts.finished += 1,
            Some(End::Broken) => {
                self.counts.broken += 1;
                self.counts.turns_broken += unsent;
            }
            _ => {
                self.counts.cut += 1;
                self.counts.turns_cut += unsent;
            }
        }
    }

    /// Plans request `number` of session `index`; `end` is the last end of the answers that it waits for.
    fn planned(
        &mut self,
        agents: &Agents,
        (index, number): (u64, u16),
        end: Option<Stamp>,
    ) -> Option<(u16, Next)> {
        let content = &self.leg.target.content;
        let team = self.open.get_mut(&index)?;
        let When { at_ns, pause_ns } = agents.when(team.session, number)?;
        let (plan, ready) = match (end, content.timing()) {
            (Some(end), Timing::ThinkOnly) => {
                let pause = Some(self.source.waited(pause_ns));
                let plan = end + content.pause(self.leg.item(index), number, pause);
                (plan, plan)
            }
            (end, _) => {
                let first_ns = agents.when(team.session, 0).map_or(0, |when| when.at_ns);
                // Rounded as the session's own beginning was.
                let since_ns = self.source.sent_at(at_ns).saturating_sub(self.source.sent_at(first_ns));
                let since = content.stretched(Duration::from_nanos(since_ns));
                let (plan, begun) = team.begun;
                (plan + since, (begun + since).max(end.unwrap_or(Stamp::ZERO)))
            }
        };
        team.outstanding += 1;
        self.unwritten.insert((ready.max(plan), index, number));
        Some((number, Next::On(plan, ready)))
    }

    /// Writes the request that goes first of those that are not written, if there is room for it: in memory, and before
    /// something else is due.
    pub(crate) fn prepare_one(&mut self, desk: &mut Desk, spare: &mut Vec<Vec<u8>>, room: Duration) -> bool {
        let Some(key) = self.unwritten.first().copied() else { return false };
        // Whoever goes later makes room for whoever goes sooner.
        while self.ahead_bytes >= AHEAD_BYTES
            && let Some(last) = self.ahead.last_key_value().map(|(last, _)| *last)
            && last > key
        {
            if let Some(written) = self.forget_written(&last) {
                spare.push(written.bytes);
            }
            self.unwritten.insert(last);
        }
        if self.ahead_bytes >= AHEAD_BYTES || room < STEP_MAX {
            return false;
        }
        self.unwritten.remove(&key);
        // A file that broke off is noticed again when the request is due.
        if let Some(written) = self.write(key.1, key.2, desk, spare) {
            self.ahead_bytes += written.bytes.len();
            self.ahead.insert(key, written);
        }
        true
    }

    /// The request of `due`, which is not the first of its session. `None` where the file broke off.
    pub(crate) fn take(&mut self, due: &Due, desk: &mut Desk, spare: &mut Vec<Vec<u8>>) -> Option<Written> {
        let ahead = self.forget_written(&(due.ready, due.index, due.turn));
        let written = ahead.or_else(|| self.write(due.index, due.turn, desk, spare))?;
        self.open.get_mut(&due.index)?.taken += 1;
        Some(written)
    }

    /// Forgets what is planned and written of a request, and gives it.
    fn forget_written(&mut self, key: &Key) -> Option<Written> {
        self.unwritten.remove(key);
        let written = self.ahead.remove(key)?;
        self.ahead_bytes -= written.bytes.len();
        Some(written)
    }

    /// The same for all of a session. What is due already is written again where it is sent after all.
    fn forget_planned(&mut self, index: u64) {
        self.unwritten.retain(|key| key.1 != index);
        self.ahead.retain(|key, written| {
            let stays = key.1 != index;
            self.ahead_bytes -= if stays { 0 } else { written.bytes.len() };
            stays
        });
    }

    fn write(
        &mut self,
        index: u64,
        number: u16,
        desk: &mut Desk,
        spare: &mut Vec<Vec<u8>>,
    ) -> Option<Written> {
        let entry = self.source.read(&self.leg, index, number)?;
        let (item, mut bytes) = (self.leg.item(index), spare.pop().unwrap_or_default());
        let max_tokens = self.leg.target.write_recorded((item, &entry), desk, &mut bytes);
        let hash = hashed(place_of(index, number), desk.body());
        Some(Written { bytes, max_tokens, hash, entry: Some(Box::new(entry)) })
    }

    /// What became of the sessions; those that are still open were cut off by the end.
    pub(crate) fn into_counts(mut self) -> Sessions {
        for (_, team) in std::mem::take(&mut self.open) {
            self.count(&team);
        }
        self.counts
    }
}

impl Team {
    /// The requests for which the answer to `number` was the last that they waited for, each with the last end of them.
    fn freed(&mut self, agents: &Agents, number: u16, end: Stamp) -> Vec<(u16, Stamp)> {
        let mut freed = Vec::new();
        for next in agents.next(self.session, number) {
            let all = agents.after(self.session, *next).len();
            let join = self.joins.entry(*next).or_insert(Join { left: all, latest: end });
            join.left -= 1;
            join.latest = join.latest.max(end);
            if join.left == 0 {
                freed.push((*next, join.latest));
                self.joins.remove(next);
            }
        }
        freed
    }
}

/// Reading and writing a prompt of 200 000 tokens takes no longer.
const STEP_MAX: Duration = Duration::from_millis(5);
