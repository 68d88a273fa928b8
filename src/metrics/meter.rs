//! What servers, GPUs and hosts say of themselves, under one name each, whoever's names they had.

/// What is read: a gauge, or a counter that only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Meter {
    /// Requests that a server works on.
    Running,
    /// Requests that wait for it.
    Waiting,
    /// Share of its KV cache in use, 0..=1.
    KvCacheUse,
    /// Share of prompt tokens that its prefix cache had, as it averages them itself, 0..=1.
    PrefixHitShare,
    /// Prompt tokens looked up in the prefix cache; a counter.
    PrefixQueries,
    /// Those found; a counter.
    PrefixHits,
    /// Requests put aside for want of memory; a counter.
    Preemptions,
    /// Prompt tokens; a counter.
    PromptTokens,
    /// Tokens generated; a counter.
    OutputTokens,
    /// Times to the first token, all together, s; a counter.
    TtftSum,
    /// How many these are; a counter.
    TtftCount,
    /// Times between tokens, all together, s; a counter.
    ItlSum,
    /// How many these are; a counter.
    ItlCount,
    /// Times of whole requests, all together, s; a counter.
    E2eSum,
    /// How many these are; a counter.
    E2eCount,
    /// Times in the queue, all together, s; a counter.
    QueueSum,
    /// How many these are; a counter.
    QueueCount,
    /// Share of the time in which a GPU worked, 0..=1.
    GpuUse,
    /// Memory of a GPU in use, bytes.
    GpuMemory,
    /// All of it, bytes.
    GpuMemoryAll,
    /// Power drawn, W.
    Power,
    /// Energy drawn, J; a counter.
    Energy,
    /// Temperature, °C.
    Temperature,
    /// Clock of the multiprocessors, MHz.
    SmClock,
    /// Clock of the memory, MHz.
    MemoryClock,
    /// Reasons for which clocks are held down, as NVML's bits.
    Throttle,
    /// Received over PCIe, bytes per second.
    PcieIn,
    /// Sent over PCIe, bytes per second.
    PcieOut,
    /// Over NVLink in both directions, bytes; a counter.
    Nvlink,
    /// Busy share of the CPUs of the client's machine, 0..=1.
    CpuBusy,
    /// Share of its CPU time that other guests took, 0..=1.
    CpuSteal,
    /// Its memory in use, bytes.
    HostMemory,
    /// Bytes that its network interfaces received; a counter.
    NetIn,
    /// Bytes that they sent; a counter.
    NetOut,
    /// Whatever was asked for by its name.
    Other,
    /// The same, a counter.
    OtherCount,
}

impl Meter {
    /// Whether it only grows.
    #[must_use]
    pub const fn is_counter(self) -> bool {
        use Meter::{
            E2eCount, E2eSum, Energy, ItlCount, ItlSum, NetIn, NetOut, Nvlink, OtherCount, OutputTokens,
            Preemptions, PrefixHits, PrefixQueries, PromptTokens, QueueCount, QueueSum, TtftCount, TtftSum,
        };
        matches!(
            self,
            PrefixQueries
                | PrefixHits
                | Preemptions
                | PromptTokens
                | OutputTokens
                | TtftSum
                | TtftCount
                | ItlSum
                | ItlCount
                | E2eSum
                | E2eCount
                | QueueSum
                | QueueCount
                | Energy
                | Nvlink
                | NetIn
                | NetOut
                | OtherCount
        )
    }
}
