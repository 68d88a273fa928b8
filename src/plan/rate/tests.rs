use super::*;
use crate::rng::{self, Purpose, Stream};

/// The arithmetic of `Course` against the integral by Simpson's rule over the definition of each shape.
fn rate_at(piece: &Piece, t: f64) -> f64 {
    let (a, b, share) = (piece.rate, piece.end(), t / piece.length_s);
    match piece.shape {
        _ if a == b => a,
        Shape::Linear => a + (b - a) * share,
        Shape::Exponential => a * (b / a).powf(share),
        Shape::Hyperbolic => 1.0 / (1.0 / a + (1.0 / b - 1.0 / a) * share),
    }
}

fn simpson(piece: &Piece, until: f64) -> f64 {
    let n = 8000;
    let at = |i: usize| rate_at(piece, until * i as f64 / n as f64);
    let inner: f64 = (1..n).map(|i| at(i) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
    (at(0) + inner + at(n)) * until / n as f64 / 3.0
}

fn close(a: f64, b: f64, share: f64) -> bool {
    (a - b).abs() <= share * a.abs().max(b.abs()).max(1e-6)
}

fn of(pieces: &[Piece], repeat: bool) -> Course {
    Course::of(&Rate::Series(Series { pieces: pieces.to_vec(), repeat }))
}

/// A series of up to eight pieces of all kinds, with rates of 0 and jumps among them.
fn random(draws: &mut Stream) -> Series {
    let n = 1 + (rng::unit(draws) * 8.0) as usize;
    let pieces = (0..n).map(|_| {
        let mut rate = || (rng::unit(draws) * 4.0 - 1.0).exp();
        let (a, b) = (rate(), rate());
        let length_s = (rng::unit(draws) * 8.0 - 3.0).exp();
        match (rng::unit(draws) * 8.0) as u32 {
            0 => Piece::steady(0.0, length_s),
            1 => Piece::steady(a, length_s),
            2 => Piece::ramp(0.0, b, length_s, Shape::Linear),
            3 => Piece::ramp(a, 0.0, length_s, Shape::Linear),
            4 => Piece::ramp(a, a * (1.0 + 1e-10), length_s, Shape::Exponential),
            5 => Piece::ramp(a, b, length_s, Shape::Exponential),
            6 => Piece::ramp(a, b, length_s, Shape::Hyperbolic),
            _ => Piece::ramp(a, b, length_s, Shape::Linear),
        }
    });
    Series { pieces: pieces.collect(), repeat: rng::unit(draws) < 0.5 }
}

#[test]
fn a_number_in_a_label_has_three_decimals_at_most() {
    for (number, text) in [
        (29.802_322_387_695_313, "29.802"),
        (5.0, "5"),
        (2.5, "2.5"),
        (999.999_9, "1000"),
        (1e6, "1000000"),
        (0.5, "0.5"),
        (0.1 + 0.2, "0.3"),
        (0.001_234_5, "0.00123"),
        (0.999_999_9, "1"),
        (1e-12, "0.000000000001"),
        (0.0, "0"),
        (f64::INFINITY, "inf"),
    ] {
        assert_eq!(in_label(number), text);
    }
}

#[test]
fn the_integral_is_that_of_the_rate() {
    let mut draws = rng::stream(1, Purpose::Choice, 0);
    for _ in 0..100 {
        let series = random(&mut draws);
        let course = Course::of(&Rate::Series(series.clone()));
        let (mut start_s, mut before) = (0.0, 0.0);
        for piece in &series.pieces {
            for part in [0.25, 0.5, 1.0] {
                let t = piece.length_s * part;
                let (actual, expected) = (course.count_by(start_s + t), before + simpson(piece, t));
                assert!(close(actual, expected, 1e-6), "{actual} is not {expected}: {piece:?} at {t}");
            }
            start_s += piece.length_s;
            before += simpson(piece, piece.length_s);
        }
        assert!(close(course.length_s(), start_s, 1e-12));
    }
}

#[test]
fn a_time_has_as_many_behind_it_as_it_was_asked_for() {
    let mut draws = rng::stream(2, Purpose::Choice, 0);
    let mut asked = 0;
    for _ in 0..500 {
        let series = random(&mut draws);
        let course = Course::of(&Rate::Series(series.clone()));
        let most = course.count_by(course.length_s()) * if series.repeat { 5.5 } else { 1.0 };
        let mut last = 0.0;
        for step in 0..200 {
            let count = most * f64::from(step) / 200.0;
            let Some(s) = course.time_of(count) else { continue };
            asked += 1;
            assert!(s >= last, "{s} before {last} in {series:?}");
            last = s;
            assert!(close(course.count_by(s), count, 1e-9), "{count} at {s}: {}", course.count_by(s));
            // The last such time: right after it there are more.
            let after = course.count_by(s * (1.0 + 1e-9) + 1e-6);
            assert!(after > count, "{count} at {s} and still {after} in {series:?}");
        }
    }
    assert!(asked > 80_000, "{asked}");
}

#[test]
fn the_last_rate_is_held_or_all_comes_again() {
    let pieces = [Piece::steady(2.0, 10.0), Piece::ramp(2.0, 4.0, 10.0, Shape::Linear)];
    let held = of(&pieces, false);
    assert_eq!([held.count_by(20.0), held.count_by(25.0)], [50.0, 70.0]);
    assert_eq!([held.time_of(50.0), held.time_of(70.0)], [Some(20.0), Some(25.0)]);
    let again = of(&pieces, true);
    assert_eq!([again.count_by(20.0), again.count_by(25.0), again.count_by(200.0)], [50.0, 60.0, 500.0]);
    assert_eq!([again.time_of(60.0), again.time_of(500.0)], [Some(25.0), Some(200.0)]);
    let steady = Course::of(&Rate::Steady(4.0));
    assert_eq!((steady.count_by(3.0), steady.time_of(12.0), steady.length_s()), (12.0, Some(3.0), 0.0));
}

#[test]
fn nothing_comes_where_the_rate_is_0() {
    let pieces = [Piece::steady(0.0, 5.0), Piece::steady(2.0, 5.0), Piece::steady(0.0, 5.0)];
    let once = of(&pieces, false);
    // The first at the end of the pause rather than at the start, and after ten of them never one again.
    assert_eq!([once.time_of(0.0), once.time_of(9.0)], [Some(5.0), Some(9.5)]);
    assert_eq!([once.time_of(10.0), once.time_of(11.0)], [None, None]);
    let again = of(&pieces, true);
    assert_eq!([again.time_of(10.0), again.time_of(11.0)], [Some(20.0), Some(20.5)]);
    assert_eq!(of(&[Piece::steady(0.0, 5.0)], true).time_of(0.0), None);
    assert_eq!(of(&[], false).time_of(0.0), None);
}

#[test]
fn extremes_give_numbers() {
    for (rate, to_rate) in [(1e-12, 1e6), (1e6, 1e-12), (1e6, 1e6), (1e-300, 1e-300)] {
        for length_s in [1e-9, 1.0, 3e7] {
            for shape in [Shape::Linear, Shape::Exponential, Shape::Hyperbolic] {
                let course = of(&[Piece::ramp(rate, to_rate, length_s, shape)], false);
                let count = course.count_by(length_s);
                assert!(count.is_finite() && count >= 0.0, "{rate} to {to_rate} in {length_s}, {shape:?}");
                for part in [0.0, 0.5, 0.999, 2.0] {
                    let s = course.time_of(count * part);
                    assert!(
                        s.is_none_or(|s| s >= 0.0),
                        "{s:?}: {rate} to {to_rate} in {length_s}, {shape:?}"
                    );
                }
            }
        }
    }
    assert_eq!(of(&[Piece::steady(1.0, 1.0)], true).time_of(1e15), Some(1e15));
}

#[test]
fn a_ramp_over_requests_has_its_rates_where_they_were_asked() {
    for (exponential, shape) in [(false, Shape::Exponential), (true, Shape::Hyperbolic)] {
        for (a, b) in [(1.0_f64, 10.0), (10.0, 1.0), (2.0, 2.0 * (1.0 + 1e-6)), (0.5, 400.0)] {
            let n = 1000.0;
            let piece = Piece::ramp_over_requests(a, b, n, exponential);
            assert_eq!(piece.shape, shape);
            let course = of(&[piece], false);
            assert!(close(course.count_by(piece.length_s), n, 1e-9), "{a} to {b}: {:?}", course);
            for part in [0.1, 0.5, 0.9] {
                let s = course.time_of(n * part).unwrap();
                let expected = if exponential { a * (b / a).powf(part) } else { a + (b - a) * part };
                let actual = rate_at(&piece, s);
                assert!(
                    close(actual, expected, 1e-9),
                    "{actual} is not {expected} after {part} of {a} to {b}"
                );
            }
        }
        assert_eq!(Piece::ramp_over_requests(5.0, 5.0, 10.0, exponential), Piece::steady(5.0, 2.0));
    }
}

#[test]
fn rates_are_shown_by_their_bounds() {
    let series = |pieces: &[Piece]| Rate::Series(Series { pieces: pieces.to_vec(), repeat: false });
    assert_eq!(Rate::Steady(2.5).to_string(), "2.5");
    assert_eq!(series(&[Piece::steady(5.0, 1.0)]).to_string(), "5");
    let down = [Piece::ramp(1.0 / 3.0, 50.0, 1.0, Shape::Linear), Piece::steady(10.0, 1.0)];
    assert_eq!((series(&down).to_string(), series(&down).peak()), ("0.333333 to 50".to_owned(), 50.0));
    assert_eq!(down[0].to_string(), "0.333333 to 50 in 1 s");
    assert_eq!(Piece::ramp(1.0, 2.0, 3.0, Shape::Hyperbolic).to_string(), "1 to 2 in 3 s, hyperbolic");
    assert_eq!(down[1].to_string(), "10 for 1 s");
}

#[test]
fn one_ramp_leads_in_and_nothing_else_does() {
    let lead_in = |pieces: &[Piece], repeat| Series { pieces: pieces.to_vec(), repeat }.lead_in_s();
    let up = Piece::ramp(0.0, 5.0, 30.0, Shape::Linear);
    assert_eq!(lead_in(&[up], false), Some(30.0));
    assert_eq!([lead_in(&[up], true), lead_in(&[up, up], false)], [None, None]);
    assert_eq!(lead_in(&[Piece::ramp(5.0, 0.0, 30.0, Shape::Linear)], false), None);
    assert_eq!(lead_in(&[Piece::steady(5.0, 30.0)], false), None);
}
