//! The search for capacity of a stored run at other limits.

use super::Records;
use super::read::{Loaded, ReadError};
use crate::metrics::slo::Slo;
use crate::strategy::{Found, Limits, Trial};

impl Loaded {
    /// What the loads that the run's search has tried say at `slo`, by their records; `None` where it was no search, or
    /// its plan is one of a later tokload, or there are no limits. Trials of an earlier run, whose records are not here, say nothing.
    ///
    /// # Errors
    ///
    /// When records are missing or broken, or a level is one of a later tokload.
    pub(super) fn capacity_at(&self, stored: &Records, slo: &Slo) -> Result<Option<Found>, ReadError> {
        if slo.is_empty() {
            return Ok(None);
        }
        let search = self.run.plan.read().ok().and_then(|plan| plan.search);
        let (Some(found), Some(search)) = (&self.run.capacity, search) else {
            return Ok(self.run.capacity.clone());
        };
        let mut trials = Vec::with_capacity(found.trials.len());
        for (place, trial) in found.trials.iter().enumerate() {
            let level = place.checked_sub(found.earlier).and_then(|place| self.run.levels.get(place));
            let Some(level) = level else {
                trials.push(Trial { judged: None, limits: Vec::new(), ..trial.clone() });
                continue;
            };
            let setting = level.setting.read().map_err(|source| self.malformed(source))?;
            let range = level.records.ok_or_else(|| self.without_records())?;
            let records = stored.read(range.into())?;
            let limits = Limits {
                slo,
                from_plan: setting.load.judged_from_plan(),
                decide: setting.decide,
                target: search.target,
                from: level.fixed_window().start,
            };
            trials.push(trial.judged_again(&records, limits));
        }
        Ok(Some(Found::again(&search, trials, found.earlier)))
    }
}
