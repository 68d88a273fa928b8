//! The linear part of a fit: three costs from rows of relative errors, what they may be off by, and which of them the
//! rows do not tell.

use super::{Row, Terms};

/// Costs that were solved for.
#[derive(Clone, Copy)]
pub(super) struct Solved {
    pub(super) costs: [f64; 3],
    /// The others are 0.
    pub(super) used: [bool; 3],
    /// Standard error of each, as a multiple of that of a relative error.
    pub(super) spread: [f64; 3],
}

/// The costs, none below zero, with the least sum of squares of relative errors. Where costs stand in for each other
/// some of them are 0, as good as any other choice. `None` without rows.
pub(super) fn solve(rows: &[Row]) -> Option<Solved> {
    let possible = |solved: &Solved| solved.costs.iter().all(|cost| *cost >= 0.0);
    if let Some(free) = least_squares(rows, [true; 3]).filter(possible) {
        return Some(free);
    }
    // Three costs: the best of all ways to leave some of them out is the best with none below zero.
    let ways = (1..7_u8).map(|way| [way & 1 != 0, way & 2 != 0, way & 4 != 0]);
    ways.filter_map(|way| least_squares(rows, way))
        .filter(possible)
        .min_by(|a, b| error(rows, a.costs).total_cmp(&error(rows, b.costs)))
}

/// The costs that the rows do not tell: those that take part in the combination that changes the rows least, if an
/// error of [`BLUR`] could move half of everything measured from one of them to the others.
pub(super) fn undetermined(rows: &[Row]) -> Terms {
    let columns: [Vec<f64>; 3] = std::array::from_fn(|k| column(rows, k));
    let lengths = columns.each_ref().map(|column| dot(column, column).sqrt());
    let absent = lengths.map(|length| length == 0.0);
    if absent.contains(&true) {
        return Terms::of(absent);
    }
    let cosine = |i: usize, j: usize| dot(&columns[i], &columns[j]) / (lengths[i] * lengths[j]);
    let gram = std::array::from_fn(|i| std::array::from_fn(|j| cosine(i, j)));
    let (least, direction) = least_eigen(gram);
    // Costs that explain all measured numbers once change them, along this direction, by the root of the eigenvalue.
    match least.max(0.0).sqrt() < 2.0 * BLUR {
        true => Terms::of(direction.map(|part| part.abs() > TAKES_PART)),
        false => Terms::default(),
    }
}

/// The least eigenvalue of a symmetric matrix and its vector of length 1, by Jacobi's rotations.
fn least_eigen(mut matrix: [[f64; 3]; 3]) -> (f64, [f64; 3]) {
    let mut vectors = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    // Quadratic convergence: four sweeps are enough for any three by three.
    for (i, j) in [(0, 1), (0, 2), (1, 2)].into_iter().cycle().take(3 * SWEEPS) {
        let angle = 0.5 * (2.0 * matrix[i][j]).atan2(matrix[j][j] - matrix[i][i]);
        let (sin, cos) = angle.sin_cos();
        let turn = |a: f64, b: f64| (cos * a - sin * b, sin * a + cos * b);
        for row in matrix.iter_mut().chain(&mut vectors) {
            (row[i], row[j]) = turn(row[i], row[j]);
        }
        let (row_i, row_j) = (matrix[i], matrix[j]);
        for (k, (a, b)) in row_i.into_iter().zip(row_j).enumerate() {
            (matrix[i][k], matrix[j][k]) = turn(a, b);
        }
    }
    let least = (0..3).fold(0, |least, k| if matrix[k][k] < matrix[least][least] { k } else { least });
    (matrix[least][least], vectors.map(|row| row[least]))
}

/// What a unit of a cost is of each measured number.
fn column(rows: &[Row], cost: usize) -> Vec<f64> {
    rows.iter().map(|row| row.factors[cost] / row.measured_ms).collect()
}

/// Sum of the squares of the relative errors.
pub(super) fn error(rows: &[Row], costs: [f64; 3]) -> f64 {
    rows.iter().map(|row| (row.fitted_ms(costs) / row.measured_ms - 1.0).powi(2)).sum()
}

/// Least squares of the relative errors in the costs that are `used`; the others are 0. By Gram-Schmidt, twice over,
/// on columns of length 1. `None` if a column is as good as a sum of those before it.
fn least_squares(rows: &[Row], used: [bool; 3]) -> Option<Solved> {
    let places: Vec<usize> = (0..3).filter(|column| used[*column]).collect();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    // Upper triangle: how column k is made of the first k + 1 of the basis.
    let mut triangle = [[0.0; 3]; 3];
    let mut lengths = [0.0; 3];
    for (k, &which) in places.iter().enumerate() {
        let mut vector = column(rows, which);
        lengths[k] = dot(&vector, &vector).sqrt();
        vector.iter_mut().for_each(|value| *value /= lengths[k]);
        for _ in 0..2 {
            for (j, unit) in basis.iter().enumerate() {
                let part = dot(unit, &vector);
                triangle[j][k] += part;
                vector.iter_mut().zip(unit).for_each(|(value, unit)| *value -= part * unit);
            }
        }
        let rest = dot(&vector, &vector).sqrt();
        // Not a number where a column is nothing but zeros.
        if rest.is_nan() || rest < DEPENDENT {
            return None;
        }
        triangle[k][k] = rest;
        vector.iter_mut().for_each(|value| *value /= rest);
        basis.push(vector);
    }
    // The right side is 1 everywhere: each row is divided by what was measured.
    let right: Vec<f64> = basis.iter().map(|unit| unit.iter().sum()).collect();
    let mut solved = Solved { costs: [0.0; 3], used, spread: [0.0; 3] };
    for (k, value) in back_substituted(&triangle, &right).into_iter().enumerate() {
        solved.costs[places[k]] = value / lengths[k];
    }
    for (j, _) in places.iter().enumerate() {
        // Column j of the triangle's inverse; a row of it has the length of the spread.
        let unit: Vec<f64> = (0..places.len()).map(|k| f64::from(u8::from(k == j))).collect();
        for (k, value) in back_substituted(&triangle, &unit).into_iter().enumerate() {
            solved.spread[places[k]] += (value / lengths[k]).powi(2);
        }
    }
    solved.spread = solved.spread.map(f64::sqrt);
    Some(solved)
}

/// What the upper triangle makes `right` of.
fn back_substituted(triangle: &[[f64; 3]; 3], right: &[f64]) -> Vec<f64> {
    let mut solution = vec![0.0; right.len()];
    for k in (0..right.len()).rev() {
        let known: f64 = (k + 1..right.len()).map(|j| triangle[k][j] * solution[j]).sum();
        solution[k] = (right[k] - known) / triangle[k][k];
    }
    solution
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Share of its length that a column must have of its own to be calculated with.
const DEPENDENT: f64 = 1e-6;
/// Relative error that any measured number may have.
pub(super) const BLUR: f64 = 0.01;
/// Share of a combination of costs, of length 1, from which on a cost is one of them.
const TAKES_PART: f64 = 0.2;
/// Over all pairs, in [`least_eigen`].
const SWEEPS: usize = 6;

#[cfg(test)]
mod tests {
    use super::super::Quantity;
    use super::*;

    fn row(factors: [f64; 3], costs: [f64; 3]) -> Row {
        let measured_ms = factors.iter().zip(costs).map(|(factor, cost)| factor * cost).sum();
        Row { users: 1, quantity: Quantity::PerRequest, measured_ms, factors }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn the_least_eigenvalue_and_its_direction_are_those_worked_by_hand() {
        let diagonal = [[3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]];
        let (least, direction) = least_eigen(diagonal);
        assert!(near(least, 1.0) && near(direction[1].abs(), 1.0));
        // Two columns of cosine c and a third at right angles: 1 - c, along their difference.
        let (least, [a, b, c]) = least_eigen([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        assert!(near(least, 0.2) && near(a, -b) && near(a.abs(), 0.5_f64.sqrt()) && near(c, 0.0));
        // 2 - sqrt 2, 2 and 2 + sqrt 2 belong to the chain of three.
        let (least, [a, b, c]) = least_eigen([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]]);
        assert!(near(least, 2.0 - 2.0_f64.sqrt()) && near(a, c) && near(b.abs(), 0.5_f64.sqrt()));
        let identity = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        assert!(near(least_eigen(identity).0, 1.0));
    }

    #[test]
    fn columns_within_the_blur_of_each_other_are_not_told_apart() {
        let costs = [10.0, 1.0, 1.0];
        let of = |apart: f64| {
            let factors = [[1.0, 1.0, 1.0], [0.5, 1.0, 1.0 + apart], [0.25, 1.0, 1.0 - apart]];
            undetermined(&factors.map(|factors| row(factors, costs)))
        };
        let blurred = Terms { sequence: true, prefill: true, ..Terms::default() };
        assert_eq!([of(0.0), of(0.01)], [blurred; 2]);
        assert_eq!(of(0.2), Terms::default());
        let rows = [row([1.0, 1.0, 0.0], costs), row([0.5, 1.0, 0.0], costs)];
        assert_eq!(undetermined(&rows), Terms { prefill: true, ..Terms::default() });
    }

    #[test]
    fn the_spread_is_that_of_independent_errors() {
        // Each cost in rows of its own: the mean of two, so that an error counts by a root of two less.
        let costs = [10.0, 2.0, 0.5];
        let units = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let rows: Vec<Row> = units.iter().chain(&units).map(|unit| row(*unit, costs)).collect();
        let solved = solve(&rows).unwrap();
        assert!(solved.costs.into_iter().zip(costs).all(|(solved, cost)| near(solved, cost)));
        let expected = costs.map(|cost| cost / 2.0_f64.sqrt());
        assert!(solved.spread.into_iter().zip(expected).all(|(a, b)| near(a, b)), "{:?}", solved.spread);
    }
}
