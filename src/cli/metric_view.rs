//! `--metric-view`, `--percentile-metrics` and `--metric-percentiles`: whose block is printed, and what stands in it.

use crate::plan::{Error, nearest};
use crate::report::others::Other;
use crate::report::vllm::{Figure, Selection};
use crate::stats::Quantile;

/// What was typed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words<'a> {
    /// Whose definitions.
    pub view: Option<&'a str>,
    /// Figures, a comma list.
    pub figures: Option<&'a str>,
    /// Percentiles, a comma list.
    pub percentiles: Option<&'a str>,
}

/// Whose block is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricView {
    /// Our table.
    #[default]
    Tokload,
    /// The block of vLLM's client.
    Vllm,
    /// The tables of aiperf.
    Aiperf,
    /// A table in the definitions of another tool.
    Other(Other),
    /// All of them beside each other.
    All,
}

impl MetricView {
    /// The views that there are, by name.
    const NAMED: [(&'static str, MetricView); 7] = [
        ("tokload", MetricView::Tokload),
        ("vllm", MetricView::Vllm),
        ("aiperf", MetricView::Aiperf),
        ("guidellm", MetricView::Other(Other::Guidellm)),
        ("servebench", MetricView::Other(Other::Servebench)),
        ("mlperf", MetricView::Other(Other::Mlperf)),
        ("all", MetricView::All),
    ];
}

impl Words<'_> {
    /// The view; `usual` where none is named.
    ///
    /// # Errors
    /// A name that is none.
    pub fn view(&self, usual: MetricView) -> Result<MetricView, Error> {
        let Some(text) = self.view else { return Ok(usual) };
        let known = MetricView::NAMED.iter().find(|(name, _)| *name == text);
        known.map(|(_, view)| *view).ok_or_else(|| {
            let names = MetricView::NAMED.map(|(name, _)| name);
            let near = nearest(text, names).map_or_else(String::new, |near| format!("did you mean {near}? "));
            let remedy = format!(
                "{near}give tokload for our definitions, {} for those of that tool, or all to see them beside each other",
                names[1..names.len() - 1].join(", ")
            );
            Error::new("--metric-view", format!("'{text}' is no view"), remedy)
        })
    }

    /// The lines of vLLM's block, where it `is_wanted`; `generates` says whether answers are texts.
    ///
    /// # Errors
    /// Names and numbers that are none, and a choice of lines for a block that nobody wants.
    pub fn selection(&self, is_wanted: bool, generates: bool) -> Result<Option<Selection>, Error> {
        let mut selection = Selection::usual(generates);
        if let Some(text) = self.figures {
            selection.figures = text.split(',').map(|name| figure(name.trim())).collect::<Result<_, _>>()?;
        }
        if let Some(text) = self.percentiles {
            selection.percentiles =
                text.split(',').map(|number| percentile(number.trim())).collect::<Result<_, _>>()?;
        }
        if is_wanted {
            return Ok(Some(selection));
        }
        for (option, given) in
            [("--percentile-metrics", self.figures), ("--metric-percentiles", self.percentiles)]
        {
            if given.is_some() {
                let wrong = "chooses lines of vLLM's block, which is not printed";
                let remedy =
                    "give --metric-view vllm as well, or leave it out: p50 and p99 are printed, others saved";
                return Err(Error::new(option, wrong, remedy));
            }
        }
        Ok(None)
    }
}

fn figure(name: &str) -> Result<Figure, Error> {
    // Ours, where vLLM has another.
    let asked = if name == "e2e" { "e2el" } else { name };
    Figure::ALL.into_iter().find(|figure| figure.name() == asked).ok_or_else(|| {
        let names = Figure::ALL.map(Figure::name);
        let near = nearest(name, names).map_or_else(String::new, |near| format!("did you mean {near}? "));
        let remedy = format!("{near}there are {}", names.join(", "));
        Error::new("--percentile-metrics", format!("'{name}' is no metric of vLLM's block"), remedy)
    })
}

fn percentile(text: &str) -> Result<Quantile, Error> {
    text.parse().map_err(|_| {
        let remedy = "give numbers from 0 to 100 with at most three decimals, as in 50,99,99.9";
        Error::new("--metric-percentiles", format!("'{text}' is no percentile"), remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_chosen_by_name_and_only_where_the_block_is_printed() {
        let words = Words { figures: Some("ttft, e2e"), percentiles: Some("50,99.9"), ..Words::default() };
        let selection = words.selection(true, true).unwrap().unwrap();
        assert_eq!(selection.figures, [Figure::Ttft, Figure::E2el]);
        assert_eq!(selection.percentiles, [Quantile::P50, "99.9".parse().unwrap()]);
        assert_eq!(words.selection(false, true).unwrap_err().subject, "--percentile-metrics");
        assert_eq!(Words::default().selection(true, false).unwrap(), Some(Selection::usual(false)));
        assert_eq!(Words::default().selection(false, true).unwrap(), None);
        for (figures, percentiles, subject) in [
            (Some("ttfb"), None, "--percentile-metrics"),
            (None, Some("101"), "--metric-percentiles"),
            (None, Some("50;99"), "--metric-percentiles"),
        ] {
            let words = Words { figures, percentiles, ..Words::default() };
            assert_eq!(words.selection(true, true).unwrap_err().subject, subject);
        }
    }

    #[test]
    fn a_view_is_that_of_a_tool_or_of_all() {
        let view = |view| Words { view, ..Words::default() }.view(MetricView::Vllm);
        assert_eq!(view(None), Ok(MetricView::Vllm));
        assert_eq!(view(Some("tokload")), Ok(MetricView::Tokload));
        assert_eq!(view(Some("aiperf")), Ok(MetricView::Aiperf));
        assert_eq!(view(Some("guidellm")), Ok(MetricView::Other(Other::Guidellm)));
        assert_eq!(view(Some("all")), Ok(MetricView::All));
        assert!(view(Some("mlpref")).unwrap_err().remedy.starts_with("did you mean mlperf?"));
        assert!(view(Some("sglang")).unwrap_err().remedy.contains("vllm"));
    }
}
