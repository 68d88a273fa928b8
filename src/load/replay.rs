//! A shard's part of a trace: its planned sends, and the requests that belong to them.
//!
//! Two readings of one file, each as far as it is needed: planned times are drawn as they come near, requests are written
//! ahead by their size. One reading for both would have to keep whatever lies between.

use crate::engine::Error;
use crate::load::agenda::Schedule;
use crate::load::target::Target;
use crate::plan::Level;
use crate::workload::recording::Sends;

/// What one shard sends of a trace.
pub(crate) struct Replayed {
    /// When.
    pub(crate) schedule: Schedule,
    /// What, in the same order and perhaps beyond the end of the schedule.
    pub(crate) requests: Sends,
}

impl Replayed {
    /// The part of shard `part.0` of `part.1` in a level that replays the target's trace; `None` for other levels.
    ///
    /// # Errors
    /// The file can no longer be read, or there is none.
    pub(crate) fn of(target: &Target, level: &Level, part: (u32, u32)) -> Result<Option<Replayed>, Error> {
        let Some(speedup) = level.load.speedup() else { return Ok(None) };
        let recording = target.content.recording();
        let recording =
            recording.ok_or_else(|| Error::Refused("a trace is planned, and none was read".to_owned()))?;
        let sends = || recording.sends(speedup, part).map_err(|error| Error::Refused(error.to_string()));
        let units = level.stop.units.unwrap_or(u64::MAX);
        // `as` saturates.
        let end_ns = level.stop.duration_s.map_or(u64::MAX, |s| (s * 1e9).round() as u64);
        let planned = sends()?.map(|sent| (sent.index, sent.offset_ns));
        let schedule = planned.take_while(move |(index, offset_ns)| *index < units && *offset_ns < end_ns);
        Ok(Some(Replayed { schedule: Box::new(schedule), requests: sends()? }))
    }
}

/// Why the file of a leg's requests broke off, if it did: what was measured then is not what was planned.
pub(crate) fn check(target: &Target) -> Result<(), Error> {
    match target.content.fault() {
        None => Ok(()),
        Some(error) => Err(Error::Refused(format!("{error}; its requests could not be sent to the end"))),
    }
}
