//! The random source of the golden programs: `java.util.Random`, for them alone.

/// A 48-bit linear congruential generator, as the Java platform documents it.
pub(crate) struct JavaRandom {
    state: u64,
    /// The second of a pair of gaussians, kept for the next call.
    spare: Option<f64>,
}

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const MASK: u64 = (1 << 48) - 1;

impl JavaRandom {
    pub(crate) fn new(seed: u64) -> JavaRandom {
        JavaRandom { state: (seed ^ MULTIPLIER) & MASK, spare: None }
    }

    /// The top `bits` of the next state, of at most 32.
    fn next(&mut self, bits: u32) -> u32 {
        self.state = (self.state.wrapping_mul(MULTIPLIER).wrapping_add(0xB)) & MASK;
        (self.state >> (48 - bits)) as u32
    }

    pub(crate) fn int(&mut self) -> i32 {
        self.next(32) as i32
    }

    /// A number in `0..n`.
    pub(crate) fn below(&mut self, n: i32) -> i32 {
        if n & (n - 1) == 0 {
            return ((i64::from(n) * i64::from(self.next(31))) >> 31) as i32;
        }
        loop {
            let u = self.next(31) as i32;
            let r = u % n;
            if (u - r).checked_add(n - 1).is_some() {
                return r;
            }
        }
    }

    /// A number in `[0, 1)`.
    pub(crate) fn double(&mut self) -> f64 {
        let high = u64::from(self.next(26)) << 27;
        (high + u64::from(self.next(27))) as f64 / (1_u64 << 53) as f64
    }

    /// A standard normal number, by the polar method.
    pub(crate) fn gaussian(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (a, b) = (2.0 * self.double() - 1.0, 2.0 * self.double() - 1.0);
            let s = a * a + b * b;
            if 0.0 < s && s < 1.0 {
                let m = (-2.0 * s.ln() / s).sqrt();
                self.spare = Some(b * m);
                return a * m;
            }
        }
    }
}

#[test]
fn draws_are_those_of_the_platform() {
    let golden = crate::goldens::values("JavaRandomDraws");
    for (seed, draws) in golden.as_object().unwrap() {
        let fresh = || JavaRandom::new(seed.parse().unwrap());
        let ints = |key: &str| -> Vec<i32> { serde_json::from_value(draws[key].clone()).unwrap() };
        let floats = |key: &str| -> Vec<f64> { serde_json::from_value(draws[key].clone()).unwrap() };
        assert_eq!(fresh().state, draws["initial_state"].as_u64().unwrap());
        let mut random = fresh();
        ints("nextInt32").into_iter().for_each(|expected| assert_eq!(random.int(), expected));
        for n in [41, 64, 1_000_000, 1_500_000_001] {
            let mut random = fresh();
            let expected = ints(&format!("nextInt({n})"));
            expected.into_iter().for_each(|expected| assert_eq!(random.below(n), expected, "below {n}"));
        }
        let mut random = fresh();
        for expected in floats("nextDouble") {
            crate::goldens::assert_close(random.double(), expected);
        }
        let mut random = fresh();
        for expected in floats("nextGaussian") {
            crate::goldens::assert_close(random.gaussian(), expected);
        }
    }
}
