//! Where more load brings no more throughput, only more waiting: the knee of a sweep.
//!
//! The rule is that of a plateau: the knee is the lowest load whose throughput the higher ones exceed by no more than
//! [`GROWTH_MAX`] on average, up to the best of them, where latency does go on growing. The average lets noise of a single
//! level pass; what collapses behind the best load is no part of it, or a deep fall would hide the growth before it. Only
//! loads that were measured are looked at, and no curve is drawn through them, so that neither how far the sweep went nor
//! how closely its loads lie moves the answer. Which levels belong to one sweep, and which throughput and latency are
//! theirs, is decided above.
//!
//! Measured on simulated servers with 8, 16 and 64 slots under 1, 2, 4, 8, 12, 16, 24 and 32 users, 12 sweeps of each, 10 s
//! a level, steps with 30 % noise. The farthest point from the chord (Kneedle) finds 8 and 16, or 12 once, and for 64
//! slots, where throughput still grows, 12 or 16: any curve that is bent has such a point. Two lines fitted to the curve,
//! the second of them flat, meet at 7, 13.5 and 19, because the curve is bent before the knee already, by the batch.
//! Throughput times the latency of a single user (the crossing of the asymptotes by Little's law) says 5.5, 8 and 10, as if
//! a server with batches were one without. The rule here gives
//! 8 and 16 in all sweeps and none for 64 slots; with answers of lognormal length, 16 in ten of twelve, 24 in one and none
//! in one.

/// One load of a sweep, measured once or several times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Users, requests per second, or whatever is varied; above 0.
    pub load: f64,
    /// What is served per second; above 0.
    pub throughput: f64,
    /// How long an answer takes on average, in any unit; above 0.
    pub latency: f64,
}

/// How the throughput of a sweep bends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bend {
    /// At the load of this place among the [`Sweep`]'s points throughput stops growing, and latency does not.
    Knee(usize),
    /// Throughput grows up to the highest load, or the loads above the place where it might have stopped are less than
    /// [`REACH_MIN`] of it away.
    Growing,
    /// From the load of this place on throughput does not grow, but neither does latency: the server is not what holds
    /// it back.
    Idle(usize),
}

/// The loads of a sweep in ascending order, each once.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    points: Vec<Point>,
}

impl Sweep {
    /// The sweep of `points` in any order. Repeats of a load become one point, the mean of them; points with a value that
    /// is not above 0 and finite are left out.
    #[must_use]
    pub fn of(points: &[Point]) -> Sweep {
        let is_usable = |point: &&Point| {
            [point.load, point.throughput, point.latency]
                .iter()
                .all(|value| value.is_finite() && *value > 0.0)
        };
        let mut sorted: Vec<Point> = points.iter().filter(is_usable).copied().collect();
        super::sort::few_by(&mut sorted, |a, b| a.load.total_cmp(&b.load));
        let mean = |repeats: &[Point], value: fn(&Point) -> f64| {
            repeats.iter().map(value).sum::<f64>() / repeats.len() as f64
        };
        let points = sorted.chunk_by(|a, b| a.load == b.load).map(|repeats| Point {
            load: repeats[0].load,
            throughput: mean(repeats, |point| point.throughput),
            latency: mean(repeats, |point| point.latency),
        });
        Sweep { points: points.collect() }
    }

    /// Its loads, ascending.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// How its throughput bends; `None` below two loads. Two can only tell that there is no growth from the first of them
    /// on: to see growth and then none takes [`LOADS_MIN`].
    #[must_use]
    pub fn bend(&self) -> Option<Bend> {
        let last = self.points.last().filter(|_| self.points.len() > 1)?;
        let highest =
            |a: &usize, b: &usize| self.points[*a].throughput.total_cmp(&self.points[*b].throughput);
        let best = (0..self.points.len()).max_by(highest)?;
        let is_flat_from = |place: &usize| {
            let (from, later) = (self.points[*place], &self.points[place + 1..=best]);
            let sum: f64 = later.iter().map(|point| point.throughput).sum();
            let no_more = sum <= later.len() as f64 * from.throughput * (1.0 + GROWTH_MAX);
            no_more && last.load >= from.load * REACH_MIN
        };
        let Some(place) = (0..=best).find(is_flat_from) else { return Some(Bend::Growing) };
        let waits = last.latency >= self.points[place].latency * LATENCY_GROWTH_MIN;
        Some(if waits { Bend::Knee(place) } else { Bend::Idle(place) })
    }
}

/// Growth of throughput that counts as none, a share. Levels of a few hundred requests repeat within some per cent.
pub const GROWTH_MAX: f64 = 0.05;
/// The highest load must be so many times that of the knee. Nearer loads differ too little for their throughput to tell
/// a plateau from growth.
pub const REACH_MIN: f64 = 1.25;
/// Latency grows where that of the highest load is so many times that of the knee. By Little's law it is at least
/// `REACH_MIN / (1 + GROWTH_MAX)` in a closed loop without pauses.
pub const LATENCY_GROWTH_MIN: f64 = 1.1;
/// Loads that it takes to see a knee behind growth.
pub const LOADS_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    /// Points of a closed loop without pauses: latency by Little's law.
    fn closed(curve: &[(f64, f64)]) -> Sweep {
        let point = |&(load, throughput): &(f64, f64)| Point { load, throughput, latency: load / throughput };
        Sweep::of(&curve.iter().map(point).collect::<Vec<_>>())
    }

    fn knee(curve: &[(f64, f64)]) -> Option<f64> {
        let sweep = closed(curve);
        match sweep.bend()? {
            Bend::Knee(place) => Some(sweep.points()[place].load),
            Bend::Growing | Bend::Idle(_) => None,
        }
    }

    const LOADS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0];

    /// A server with batches: a step costs 10 ms and 0.7 ms for each of its sequences, of which there are at most `slots`.
    fn batching(slots: f64) -> Vec<(f64, f64)> {
        LOADS.iter().map(|n| (*n, n.min(slots) / (10.0 + 0.7 * n.min(slots)))).collect()
    }

    #[test]
    fn the_knee_is_the_last_load_that_brought_more() {
        for slots in [2.0, 4.0, 8.0, 12.0, 16.0, 24.0] {
            assert_eq!(knee(&batching(slots)), Some(slots));
        }
        // Between two loads: at the one that has reached the plateau.
        assert_eq!(knee(&batching(14.0)), Some(16.0));
    }

    #[test]
    fn how_far_and_how_closely_loads_lie_does_not_move_it() {
        let plateau = |n: f64| (n, n.min(16.0));
        for last in [24.0, 64.0, 1024.0] {
            assert_eq!(knee(&[1.0, 8.0, 14.0, 16.0, last].map(plateau)), Some(16.0));
        }
        assert_eq!(knee(&[1.0, 4.0, 16.0, 17.0, 18.0, 19.0, 20.0].map(plateau)), Some(16.0));
        assert_eq!(knee(&[1.0, 16.0, 24.0].map(plateau)), Some(16.0));
    }

    #[test]
    fn no_knee_is_found_in_what_still_grows() {
        assert_eq!(knee(&batching(64.0)), None);
        assert_eq!(closed(&batching(64.0)).bend(), Some(Bend::Growing));
        assert_eq!(knee(&batching(32.0)), None);
        let linear = LOADS.map(|n| (n, n));
        assert_eq!(knee(&linear), None);
        // Too near the end to tell.
        assert_eq!(knee(&[(1.0, 1.0), (16.0, 16.0), (18.0, 16.0)]), None);
    }

    #[test]
    fn too_few_loads_say_nothing() {
        assert_eq!(closed(&[]).bend(), None);
        assert_eq!(closed(&[(1.0, 5.0)]).bend(), None);
        // Repeats of a load are one.
        assert_eq!(closed(&[(1.0, 5.0), (1.0, 5.1)]).bend(), None);
        // Of two loads no more than that nothing grows behind the first.
        assert_eq!(knee(&[(2.0, 5.0), (4.0, 5.0)]), Some(2.0));
        assert_eq!(knee(&[(2.0, 5.0), (4.0, 9.0)]), None);
    }

    #[test]
    fn a_server_that_never_gained_has_its_knee_at_the_first_load() {
        assert_eq!(knee(&[(1.0, 5.0), (2.0, 5.1), (4.0, 5.0)]), Some(1.0));
    }

    #[test]
    fn a_collapse_beyond_the_knee_does_not_move_it() {
        assert_eq!(knee(&[(1.0, 1.0), (8.0, 8.0), (16.0, 15.0), (32.0, 10.0), (64.0, 3.0)]), Some(16.0));
    }

    #[test]
    fn what_does_not_wait_has_no_knee() {
        let point = |load: f64, throughput: f64, latency: f64| Point { load, throughput, latency };
        // As with fewer requests than users: no more are sent, and none waits for another.
        let sweep = Sweep::of(&[point(1.0, 1.0, 10.0), point(4.0, 4.0, 10.0), point(16.0, 4.0, 10.0)]);
        assert_eq!(sweep.bend(), Some(Bend::Idle(1)));
    }

    #[test]
    fn values_that_are_none_are_left_out_and_repeats_are_their_mean() {
        let point = |load: f64, throughput: f64| Point { load, throughput, latency: 1.0 };
        let sweep = Sweep::of(&[
            point(4.0, 3.0),
            point(1.0, 2.0),
            point(2.0, 0.0),
            point(f64::NAN, 1.0),
            point(8.0, f64::INFINITY),
            point(1.0, 4.0),
        ]);
        assert_eq!(sweep.points(), [point(1.0, 3.0), point(4.0, 3.0)]);
    }

    /// Within neighbours under noise with a standard deviation of 2 % in every level.
    #[test]
    fn noise_moves_it_to_a_neighbour_at_most() {
        let (mut exact, mut none) = (0, 0);
        for seed in 0..200 {
            let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
            // Sum of 12 uniform values: nearly normal with a standard deviation of 1.
            let mut normal = || (0..12).map(|_| rng::unit(&mut stream)).sum::<f64>() - 6.0;
            let noisy: Vec<_> =
                batching(16.0).iter().map(|(n, x)| (*n, x * (1.0 + 0.02 * normal()))).collect();
            let knee = knee(&noisy);
            assert!(knee.is_none_or(|knee| (12.0..=24.0).contains(&knee)), "{knee:?} with seed {seed}");
            (exact, none) = (exact + i32::from(knee == Some(16.0)), none + i32::from(knee.is_none()));
        }
        assert_eq!((exact, none), (195, 0), "of 200");
    }
}
