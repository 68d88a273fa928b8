//! Which figures and percentiles a block has: `--percentile-metrics` and `--metric-percentiles`.

use crate::stats::Quantile;

/// A figure of vLLM's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Time to the first token.
    Ttft,
    /// Time per output token after the first.
    Tpot,
    /// Gap between events.
    Itl,
    /// From the start to the last token.
    E2el,
    /// Wait before the start.
    ClientQueueTime,
    /// Both together.
    E2elIncludingClientQueue,
}

impl Figure {
    /// All, in the order of the block.
    pub const ALL: [Figure; 6] = [
        Figure::Ttft,
        Figure::Tpot,
        Figure::Itl,
        Figure::E2el,
        Figure::ClientQueueTime,
        Figure::E2elIncludingClientQueue,
    ];

    /// Its name in options and in JSON keys.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// Its name in a line of the block.
    pub(super) fn title(self) -> &'static str {
        self.words().1
    }

    /// The heading of its lines.
    pub(super) fn heading(self) -> &'static str {
        self.words().2
    }

    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Figure::Ttft => ("ttft", "TTFT", "Time to First Token"),
            Figure::Tpot => ("tpot", "TPOT", "Time per Output Token (excl. 1st token)"),
            Figure::Itl => ("itl", "ITL", "Inter-token Latency"),
            Figure::E2el => ("e2el", "E2EL", "End-to-end Latency"),
            Figure::ClientQueueTime => ("client_queue_time", "Client Queue Time", "Client-side Queueing"),
            Figure::E2elIncludingClientQueue => (
                "e2el_including_client_queue",
                "E2EL incl. Client Queue",
                "Queue-inclusive End-to-end Latency",
            ),
        }
    }
}

/// The chosen lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Figures; their order does not matter.
    pub figures: Vec<Figure>,
    /// Percentiles of each, in their order.
    pub percentiles: Vec<Quantile>,
}

impl Selection {
    /// vLLM's default: p99 of TTFT, TPOT and ITL, or of E2EL where there are no tokens.
    #[must_use]
    pub fn usual(generates: bool) -> Selection {
        let figures = match generates {
            true => vec![Figure::Ttft, Figure::Tpot, Figure::Itl],
            false => vec![Figure::E2el],
        };
        Selection { figures, percentiles: vec![Quantile::P99] }
    }
}
