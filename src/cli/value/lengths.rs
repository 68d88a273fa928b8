//! Lengths as they are typed: a number, or a distribution as in `lognormal:median=600,sigma=1,min=8,max=8192`.

use super::{integer, number};
use crate::plan::{Distribution, Error, Lengths};

/// A length for all, or a distribution that each is drawn from.
///
/// - `200`
/// - `uniform:min=100,max=300`
/// - `normal:mean=200,stddev=50`
/// - `lognormal:median=600,sigma=1`, or `lognormal:mean=989,sigma=1`
/// - `gamma:mean=600,shape=2`, or `gamma:mean=600,cv=0.7`
/// - `zipf:exponent=1.2,max=4096`
///
/// All but the first two may have `min` and `max`, too. Files are not read here.
///
/// # Errors
/// Unknown distributions, and keys that are unknown, missing or given twice. Whether the numbers make sense is the
/// plan's to say.
pub fn lengths(option: &str, text: &str) -> Result<Lengths, Error> {
    let Some((name, parameters)) = text.split_once(':') else {
        return match integer(option, text) {
            Ok(length) => Ok(Lengths::Fixed(length)),
            Err(error) => Err(Error { remedy: REMEDY.to_owned(), ..error }),
        };
    };
    let mut given = Parameters::read(option, name, parameters)?;
    let distribution = match name {
        "gamma" => {
            let (mean, shape, cv) = (given.need("mean")?, given.take("shape"), given.take("cv"));
            let shape = match (shape, cv) {
                (Some(shape), None) => number(option, shape)?,
                // The coefficient of variation is 1 / sqrt(shape).
                (None, Some(cv)) => number(option, cv)?.powi(-2),
                _ => return Err(given.wrong("has either a shape or a cv")),
            };
            Distribution::Gamma { mean, shape, min: given.bound("min")?, max: given.bound("max")? }
        }
        "lognormal" => {
            let (median, mean, sigma) = (given.take("median"), given.take("mean"), given.need("sigma")?);
            let median = match (median, mean) {
                (Some(median), None) => number(option, median)?,
                // The mean of a lognormal is its median times exp(sigma^2 / 2).
                (None, Some(mean)) => number(option, mean)? / (sigma * sigma / 2.0).exp(),
                _ => return Err(given.wrong("has either a median or a mean")),
            };
            Distribution::Lognormal { median, sigma, min: given.bound("min")?, max: given.bound("max")? }
        }
        "normal" => Distribution::Normal {
            mean: given.need("mean")?,
            stddev: given.need("stddev")?,
            min: given.bound("min")?,
            max: given.bound("max")?,
        },
        "uniform" => match (given.bound("min")?, given.bound("max")?) {
            (Some(min), Some(max)) => Distribution::Uniform { min, max },
            _ => return Err(given.wrong("has no min or no max")),
        },
        "zipf" => {
            let (exponent, min) = (given.need("exponent")?, given.bound("min")?);
            let max = given.bound("max")?.ok_or_else(|| given.wrong("has no max"))?;
            Distribution::Zipf { exponent, min, max }
        }
        _ => return Err(given.wrong("is not a distribution of lengths")),
    };
    match given.pairs.first() {
        Some((key, _)) => Err(given.wrong(&format!("has no '{key}', or has it twice"))),
        None => Ok(Lengths::Drawn(distribution)),
    }
}

/// What stands after the name of a distribution and has not been used yet.
struct Parameters<'a> {
    option: &'a str,
    name: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Parameters<'a> {
    fn read(option: &'a str, name: &'a str, text: &'a str) -> Result<Parameters<'a>, Error> {
        let mut parameters = Parameters { option, name, pairs: Vec::new() };
        for item in text.split(',') {
            let Some((key, value)) = item.split_once('=') else {
                return Err(parameters.wrong(&format!("has '{item}', which is not key=value")));
            };
            parameters.pairs.push((key.trim(), value.trim()));
        }
        Ok(parameters)
    }

    fn take(&mut self, key: &str) -> Option<&'a str> {
        let place = self.pairs.iter().position(|(name, _)| *name == key)?;
        Some(self.pairs.remove(place).1)
    }

    fn need(&mut self, key: &str) -> Result<f64, Error> {
        match self.take(key) {
            Some(text) => number(self.option, text),
            None => Err(self.wrong(&format!("has no {key}"))),
        }
    }

    fn bound(&mut self, key: &str) -> Result<Option<u32>, Error> {
        self.take(key).map(|text| integer(self.option, text)).transpose()
    }

    fn wrong(&self, what: &str) -> Error {
        Error::new(self.option, format!("'{}' {what}", self.name), REMEDY)
    }
}

const REMEDY: &str = "give a number, uniform:min=100,max=300, normal:mean=200,stddev=50, \
                      lognormal:median=600,sigma=1, gamma:mean=600,shape=2 or zipf:exponent=1.2,max=4096 (with min= and \
                      max= if wished), or empirical:FILE";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Lengths {
        lengths("--random-input-len", text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn refused(text: &str) -> String {
        let error = lengths("--random-input-len", text).expect_err(text);
        assert_eq!(error.subject, "--random-input-len");
        error.wrong
    }

    #[test]
    fn every_distribution_is_read() {
        assert_eq!(read("200"), Lengths::Fixed(200));
        assert_eq!(
            read("uniform:min=100,max=300"),
            Lengths::Drawn(Distribution::Uniform { min: 100, max: 300 })
        );
        assert_eq!(
            read("normal:stddev=50, mean=200.5, min=9"),
            Lengths::Drawn(Distribution::Normal { mean: 200.5, stddev: 50.0, min: Some(9), max: None })
        );
        assert_eq!(
            read("lognormal:median=600,sigma=1,min=8,max=8192"),
            Lengths::Drawn(Distribution::Lognormal {
                median: 600.0,
                sigma: 1.0,
                min: Some(8),
                max: Some(8192)
            })
        );
    }

    #[test]
    fn a_gamma_has_a_shape_or_a_variation_and_a_zipf_an_end() {
        let gamma =
            |shape| Lengths::Drawn(Distribution::Gamma { mean: 600.0, shape, min: None, max: Some(900) });
        assert_eq!(read("gamma:mean=600,shape=2.5,max=900"), gamma(2.5));
        assert_eq!(read("gamma:mean=600,cv=0.5,max=900"), gamma(4.0));
        assert_eq!(refused("gamma:mean=600"), "'gamma' has either a shape or a cv");
        assert_eq!(refused("gamma:mean=600,shape=1,cv=1"), "'gamma' has either a shape or a cv");
        assert_eq!(refused("gamma:shape=1"), "'gamma' has no mean");
        let zipf = Distribution::Zipf { exponent: 1.25, min: Some(4), max: 4096 };
        assert_eq!(read("zipf:exponent=1.25,max=4096,min=4"), Lengths::Drawn(zipf));
        assert_eq!(refused("zipf:exponent=1"), "'zipf' has no max");
        assert_eq!(refused("zipf:max=9"), "'zipf' has no exponent");
    }

    #[test]
    fn a_lognormal_of_a_mean_has_that_mean() {
        let lengths = read("lognormal:mean=900,sigma=1.5");
        assert!((lengths.mean() - 900.0).abs() < 1e-9, "{}", lengths.mean());
        assert_eq!(lengths.bounds(), (1, Lengths::MAX));
    }

    #[test]
    fn what_is_no_length_is_refused_with_its_name() {
        assert_eq!(refused("1.5"), "'1.5' is not a whole number");
        assert_eq!(refused("zeta:s=2"), "'zeta' is not a distribution of lengths");
        assert_eq!(refused("normal:200"), "'normal' has '200', which is not key=value");
        assert_eq!(refused("normal:mean=200"), "'normal' has no stddev");
        assert_eq!(refused("uniform:min=1"), "'uniform' has no min or no max");
        assert_eq!(refused("lognormal:sigma=1"), "'lognormal' has either a median or a mean");
        assert_eq!(refused("lognormal:sigma=1,mean=2,median=1"), "'lognormal' has either a median or a mean");
        assert_eq!(refused("uniform:min=1,max=2,mean=1"), "'uniform' has no 'mean', or has it twice");
        assert_eq!(refused("uniform:min=1,max=2,min=1"), "'uniform' has no 'min', or has it twice");
        assert_eq!(refused("uniform:min=-1,max=2"), "'-1' is not a whole number");
    }
}
