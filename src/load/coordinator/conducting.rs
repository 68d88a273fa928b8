//! One leg as the coordinator sees it, from its orders to the shards' reports.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::threads::joined;
use super::{Events, LoadEngine};
use crate::engine::Error;
use crate::load::assemble::LegOutcome;
use crate::load::gauges::Reading;
use crate::load::leg::{Halt, Leg, Order, Part, Reply};
use crate::load::until::{Standing, Watch};
use crate::metrics::Phase;
use crate::run::{Event, Tick};
use crate::time::Stamp;

/// How often a live view is told.
const TICK: Duration = Duration::from_millis(250);
/// How often the coordinator looks whether the level may begin, or be ended by what is seen in it.
const LOOK: Duration = Duration::from_millis(20);
/// How often it looks at the user's wishes meanwhile: it may share a core with a shard.
const GLANCE: Duration = Duration::from_millis(125);
/// From the word to start to the start: every shard is awake by then.
const START_LEAD: Duration = Duration::from_millis(2);

/// What the shards are to send in a leg.
pub(super) struct Sends {
    pub(super) parts: Vec<Part>,
    /// Decides whether the leg goes on, where its length depends on what comes.
    pub(super) watch: Option<Watch>,
    /// Which level it is, where others decide when it starts.
    pub(super) agreed: Option<usize>,
}

impl LoadEngine {
    /// Runs one leg: hands it to the shards, sets their common start, asks and decides where its length depends on what
    /// comes, passes on the user's wishes, and gathers their reports.
    ///
    /// # Errors
    /// A shard was lost.
    pub(super) fn run_leg(
        &mut self,
        leg: Leg,
        sends: Sends,
        events: Events<'_>,
    ) -> Result<LegOutcome, Error> {
        let Sends { parts, mut watch, agreed } = sends;
        let agreed = self.setup.agreed.clone().zip(agreed);
        if self.setup.interrupts.count() > 0 {
            // The user's wish came before this leg, in the warm-up or between two: nothing more is sent.
            let start = self.setup.clock.now();
            let cut = leg.cut;
            return Ok(LegOutcome {
                start,
                cut,
                reports: Vec::new(),
                watched: None,
                interrupted: true,
                replicas: Vec::new(),
            });
        }
        let working = parts.len();
        let mut leg = leg;
        leg.connections.warm.1 = working;
        let leg = Arc::new(leg);
        let before: Reading = self.shards.iter().map(|shard| shard.gauges.read()).sum();
        for (part, shard) in parts.into_iter().zip(&self.shards) {
            // A shard that is gone is noticed below, by its missing reply.
            let _ = shard.orders.send(Order { leg: Arc::clone(&leg), part });
            shard.waker.wake();
        }
        let mut outcome = LegOutcome {
            start: Stamp::ZERO,
            cut: leg.cut,
            reports: Vec::new(),
            watched: None,
            interrupted: false,
            replicas: Vec::new(),
        };
        let (mut prepared, mut next_tick, mut samples_due, mut overdue) = (0, Stamp::ZERO, 0, 0);
        while outcome.reports.len() < working {
            let is_watched = watch.is_some() || leg.signal.start().is_none();
            match self.replies.recv_timeout(if is_watched { LOOK } else { GLANCE }) {
                Ok(Reply::Prepared) => {
                    prepared += 1;
                    match &agreed {
                        _ if prepared < working => {}
                        None => self.begin(&leg, &mut outcome, None),
                        Some((agreed, ordinal)) => agreed.ready(*ordinal),
                    }
                }
                Ok(Reply::Sample(sample)) => {
                    samples_due -= 1;
                    if let Some(watch) = &mut watch {
                        watch.take(sample.seen);
                        overdue += sample.overdue;
                        if samples_due == 0 && !outcome.interrupted {
                            let elapsed = self.setup.clock.now() - outcome.start;
                            self.decide(&leg, watch, (before, elapsed, overdue), events);
                        }
                    }
                }
                Ok(Reply::Done(report)) => outcome.reports.push(*report),
                Err(RecvTimeoutError::Timeout) => self.look_for_lost_shards()?,
                Err(RecvTimeoutError::Disconnected) => {
                    self.look_for_lost_shards()?;
                    return Err(Error::Refused("all shards have ended".to_owned()));
                }
            }
            self.pass_on_interrupts(&leg, &mut outcome);
            if prepared == working && leg.signal.start().is_none() {
                let start = agreed.as_ref().and_then(|(agreed, _)| agreed.take());
                start
                    .iter()
                    .filter_map(|start| start.note.as_ref())
                    .for_each(|note| events(Event::Note(note)));
                match start {
                    Some(start) => self.begin(&leg, &mut outcome, Some(start.at)),
                    // Nobody is waited for any more.
                    None if outcome.interrupted => self.begin(&leg, &mut outcome, None),
                    None => {}
                }
            }
            let now = self.setup.clock.now();
            if leg.signal.start().is_none() || now < outcome.start {
                continue;
            }
            if now >= next_tick {
                next_tick = now + TICK;
                events(Event::Tick(self.tick(before, (now - outcome.start).as_secs_f64())));
            }
            if samples_due == 0
                && !outcome.interrupted
                && outcome.reports.is_empty()
                && watch
                    .as_ref()
                    .is_some_and(|watch| watch.is_due(now - outcome.start, self.sent_since(before)))
            {
                (samples_due, overdue) = (working, 0);
                leg.signal.ask();
                self.wake_all();
            }
        }
        outcome.watched = watch.map(|mut watch| {
            outcome
                .reports
                .iter_mut()
                .for_each(|report| watch.take(std::mem::take(&mut report.observations)));
            watch.end()
        });
        outcome.replicas = leg.replicas.as_ref().map(|replicas| replicas.names()).unwrap_or_default();
        Ok(outcome)
    }

    /// Sets the common start: at the time that was agreed on, or as soon as every shard is awake.
    fn begin(&self, leg: &Leg, outcome: &mut LegOutcome, at: Option<Stamp>) {
        let soonest = self.setup.clock.now() + START_LEAD;
        outcome.start = at.map_or(soonest, |at| at.max(soonest));
        if let Some(spool) = self.setup.spool.as_ref().filter(|_| leg.phase == Phase::Measured) {
            // Told before any shard has a record to hand over.
            spool.begin_measuring(outcome.start);
        }
        leg.signal.set_start(outcome.start);
        self.wake_all();
    }

    /// All shards have told what they have seen: goes on or not.
    fn decide(&self, leg: &Leg, watch: &mut Watch, stands: (Reading, Duration, u64), events: Events<'_>) {
        let (before, elapsed, overdue) = stands;
        let now: Reading = self.shards.iter().map(|shard| shard.gauges.read()).sum();
        let hopeless = now.ok == before.ok && now.failed > before.failed;
        let sent = now.sent - before.sent;
        let decision = watch.decide(Standing { elapsed, sent, overdue, hopeless });
        leg.signal.set_reach(decision.reach, decision.open);
        if decision.stop {
            leg.signal.halt(Halt::Stop);
        }
        self.wake_all();
        if let Some(note) = decision.note {
            events(Event::Note(&note));
        }
    }

    fn sent_since(&self, before: Reading) -> u64 {
        let now: Reading = self.shards.iter().map(|shard| shard.gauges.read()).sum();
        now.sent - before.sent
    }

    fn tick(&self, before: Reading, elapsed_s: f64) -> Tick {
        let now: Reading = self.shards.iter().map(|shard| shard.gauges.read()).sum();
        Tick {
            elapsed_s,
            in_flight: now.in_flight(),
            ok: now.ok - before.ok,
            failed: now.failed - before.failed,
            events: now.events - before.events,
        }
    }

    fn pass_on_interrupts(&self, leg: &Leg, outcome: &mut LegOutcome) {
        let wished = match self.setup.interrupts.count() {
            0 => Halt::No,
            1 => Halt::Stop,
            _ => Halt::Abort,
        };
        // A leg whose outcome is certain may have stopped by itself before.
        if wished > leg.signal.halted() || (wished != Halt::No && !outcome.interrupted) {
            outcome.interrupted = true;
            leg.signal.halt(wished);
            self.wake_all();
        }
    }

    fn wake_all(&self) {
        self.shards.iter().for_each(|shard| shard.waker.wake());
    }

    /// A shard only ends when its orders end: one that has ended before has failed.
    fn look_for_lost_shards(&mut self) -> Result<(), Error> {
        for (place, shard) in self.shards.iter_mut().enumerate() {
            if let Some(thread) = shard.thread.take_if(|thread| thread.is_finished()) {
                joined(place, thread)?;
                return Err(Error::Refused(format!("shard {place} ended before its work")));
            }
        }
        Ok(())
    }
}
