//! Bootstrap over blocks: how far a figure would move if other stretches of the same length had been measured.
//!
//! Consecutive requests resemble each other, so that drawing single ones anew pretends to more knowledge than there is.
//! Blocks that are longer than the correlation lasts are nearly independent and are drawn as wholes (Carlstein 1986).
//! What a resample needs is counted once for each block, so that it costs the same for a thousand requests and for ten
//! million.

use crate::rng::{self, Purpose};
use crate::stats::quantile::Quantile;

/// How often each block is drawn, in each of a number of resamples.
#[derive(Clone, Debug)]
pub struct Resamples {
    blocks: usize,
    /// For each resample the draws of each block, all in one list.
    draws: Vec<u32>,
}

impl Resamples {
    /// Resamples that a standard error is taken from: it is then itself known to 1 / sqrt(2 n), three percent.
    pub const COUNT: usize = 500;

    /// [`Resamples::COUNT`] resamples of `blocks` blocks, the same for every call.
    #[must_use]
    pub fn of(blocks: usize) -> Resamples {
        let mut draws = vec![0; Resamples::COUNT * blocks];
        let n = u32::try_from(blocks).unwrap_or(u32::MAX);
        for (resample, draws) in draws.chunks_exact_mut(blocks.max(1)).enumerate() {
            let mut stream = rng::stream(blocks as u64, Purpose::Resample, resample as u64);
            for _ in 0..blocks {
                draws[rng::below(&mut stream, n) as usize] += 1;
            }
        }
        Resamples { blocks, draws }
    }

    /// The standard error of `figure`, a function of how often each block is drawn, as the standard deviation over the
    /// resamples times `sqrt(b / (b - 1))`: without the factor b blocks make it too small. Resamples in which the figure
    /// is not finite are left out.
    ///
    /// `None` below two blocks, and where fewer than half of the resamples have a figure.
    #[must_use]
    pub fn standard_error(&self, figure: impl Fn(&[u32]) -> f64) -> Option<f64> {
        if self.blocks < 2 {
            return None;
        }
        let drawn = self.draws.chunks_exact(self.blocks).map(figure);
        let values: Vec<f64> = drawn.filter(|value| value.is_finite()).collect();
        if values.len() < Resamples::COUNT / 2 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        Some((variance * self.blocks as f64 / (self.blocks - 1) as f64).sqrt())
    }
}

/// A quantile of the values of several blocks, for any number of draws of each.
///
/// The values are counted at the nearest ranks of at most [`QuantileOfBlocks::GRID`] places around the quantile. A
/// resample whose quantile lies beyond them gets the outermost.
#[derive(Clone, Debug)]
pub struct QuantileOfBlocks {
    quantile: Quantile,
    /// Number of values of each block.
    sizes: Vec<u32>,
    /// Rising.
    grid: Vec<f64>,
    /// For each place of the grid, how many values of each block are not above it.
    below: Vec<u32>,
}

impl QuantileOfBlocks {
    /// Places at which values are counted.
    pub const GRID: usize = 512;

    /// Of `values`, consecutive ones of which make a block: `edges` are the places where blocks end, rising, the last
    /// being the number of values. `effect` is how many values are worth one independent one: it says how far around the
    /// quantile the grid has to reach. `None` without values.
    #[must_use]
    pub fn new(values: &[f64], edges: &[usize], quantile: Quantile, effect: f64) -> Option<QuantileOfBlocks> {
        let mut order: Vec<u32> = (0..u32::try_from(values.len()).ok()?).collect();
        order.sort_unstable_by(|a, b| values[*a as usize].total_cmp(&values[*b as usize]));
        let block_of = |place: u32| edges.partition_point(|edge| *edge <= place as usize);
        let mut starts = edges.iter().scan(0, |start, end| Some(end - std::mem::replace(start, *end)));
        let sizes: Vec<u32> = starts.by_ref().map(|size| size as u32).collect();
        let ranks = grid_ranks(values.len(), quantile, effect);
        let (mut grid, mut below) = (Vec::new(), Vec::new());
        let mut counts = vec![0_u32; edges.len()];
        let mut next = ranks.into_iter().peekable();
        for (place, index) in order.iter().enumerate() {
            counts[block_of(*index)] += 1;
            if next.next_if_eq(&(place + 1)).is_some() {
                grid.push(values[*index as usize]);
                below.extend(&counts);
            }
        }
        (!grid.is_empty()).then_some(QuantileOfBlocks { quantile, sizes, grid, below })
    }

    /// The quantile where each block is drawn as often as `draws` says; not a number where none is.
    #[must_use]
    pub fn drawn(&self, draws: &[u32]) -> f64 {
        let sum = |counts: &[u32]| -> u64 {
            counts.iter().zip(draws).map(|(count, times)| u64::from(*count) * u64::from(*times)).sum()
        };
        let n = sum(&self.sizes);
        if n == 0 {
            return f64::NAN;
        }
        let rank = self.quantile.rank(n);
        let blocks = self.sizes.len();
        let (mut low, mut high) = (0, self.grid.len() - 1);
        while low < high {
            let middle = low.midpoint(high);
            let counted = sum(&self.below[middle * blocks..(middle + 1) * blocks]);
            if counted >= rank { high = middle } else { low = middle + 1 }
        }
        self.grid[low]
    }
}

/// The ranks, from 1, at which values are counted: all where there are few, else evenly spaced over eight standard
/// errors of the rank to both sides.
fn grid_ranks(n: usize, quantile: Quantile, effect: f64) -> Vec<usize> {
    if n <= QuantileOfBlocks::GRID {
        return (1..=n).collect();
    }
    let p = f64::from(quantile.parts()) / 1e5;
    let reach = 8.0 * (n as f64 * p * (1.0 - p) * effect.max(1.0)).sqrt();
    let middle = quantile.rank(n as u64) as f64;
    let (first, last) = ((middle - reach).max(1.0), (middle + reach).min(n as f64));
    let step = (last - first) / (QuantileOfBlocks::GRID - 1) as f64;
    let mut ranks: Vec<usize> =
        (0..QuantileOfBlocks::GRID).map(|i| (first + step * i as f64).round() as usize).collect();
    ranks.dedup();
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::quantile::nearest_rank;

    fn draws(seed: u64, n: usize) -> Vec<f64> {
        let mut stream = rng::stream(seed, Purpose::Choice, 0);
        (0..n).map(|_| rng::unit(&mut stream)).collect()
    }

    fn edges(n: usize, blocks: usize) -> Vec<usize> {
        (1..=blocks).map(|i| i * n / blocks).collect()
    }

    /// A quantile of drawn blocks is that of the list that the draws make.
    #[test]
    fn a_drawn_quantile_is_that_of_the_written_out_list() {
        for (n, blocks) in [(10, 3), (97, 7), (512, 10)] {
            let (values, edges) = (draws(n as u64, n), edges(n, blocks));
            for quantile in [Quantile::P50, Quantile::P90, Quantile::P99] {
                let of = QuantileOfBlocks::new(&values, &edges, quantile, 1.0).unwrap();
                for resample in Resamples::of(blocks).draws.chunks_exact(blocks).take(20) {
                    let mut list = Vec::new();
                    let mut start = 0;
                    for (end, times) in edges.iter().zip(resample) {
                        (0..*times).for_each(|_| list.extend(&values[start..*end]));
                        start = *end;
                    }
                    list.sort_unstable_by(f64::total_cmp);
                    assert_eq!(Some(of.drawn(resample)), nearest_rank(&list, quantile), "{n} {quantile}");
                }
            }
        }
    }

    /// On a grid it is within the grid's step of it.
    #[test]
    fn a_grid_is_as_good_as_the_list_to_a_few_ranks() {
        let n = 20_000;
        let (values, edges) = (draws(3, n), edges(n, 20));
        let grid = QuantileOfBlocks::new(&values, &edges, Quantile::P90, 1.0).unwrap();
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (once, exact) = (grid.drawn(&[1; 20]), nearest_rank(&sorted, Quantile::P90).unwrap());
        let rank = |value: f64| sorted.partition_point(|other| *other < value) as i64;
        assert!((rank(once) - rank(exact)).abs() <= 3, "{once} {exact}");
    }

    /// Of independent values it is what theory says: sqrt(p (1 - p) / n) over a density of 1.
    #[test]
    fn the_standard_error_of_independent_values_is_the_textbooks() {
        let n = 4000;
        let expected = (0.25 / n as f64).sqrt();
        let mean = (0..20)
            .map(|seed| {
                let of =
                    QuantileOfBlocks::new(&draws(50 + seed, n), &edges(n, 40), Quantile::P50, 1.0).unwrap();
                Resamples::of(40).standard_error(|draws| of.drawn(draws)).unwrap() / 20.0
            })
            .sum::<f64>();
        assert!((mean / expected - 1.0).abs() < 0.15, "{mean} {expected}");
    }

    /// Each value eight times in a row is worth one: the error is sqrt(8) times that of as many independent values.
    #[test]
    fn blocks_see_what_neighbours_share() {
        let waves: Vec<f64> = draws(9, 1000).into_iter().flat_map(|value| [value; 8]).collect();
        let of = QuantileOfBlocks::new(&waves, &edges(8000, 40), Quantile::P50, 8.0).unwrap();
        let error = Resamples::of(40).standard_error(|draws| of.drawn(draws)).unwrap();
        let expected = (0.25_f64 / 1000.0).sqrt();
        assert!((error / expected - 1.0).abs() < 0.35, "{error} {expected}");
    }

    #[test]
    fn what_has_no_spread_or_no_blocks_has_no_error() {
        let of = QuantileOfBlocks::new(&[3.0; 40], &edges(40, 10), Quantile::P50, 1.0).unwrap();
        assert_eq!(Resamples::of(10).standard_error(|draws| of.drawn(draws)), Some(0.0));
        assert_eq!(Resamples::of(1).standard_error(|_| 1.0), None);
        assert_eq!(Resamples::of(4).standard_error(|_| f64::NAN), None);
        assert!(QuantileOfBlocks::new(&[], &[], Quantile::P50, 1.0).is_none());
        assert!(of.drawn(&[0; 10]).is_nan());
    }
}
