//! What machine this is, in a line. What its graphics cards are is not known yet.

use crate::report::machine;
use crate::run_file::schema::EnvironmentBlock;
use crate::sys::affinity::usable_cores;
use crate::sys::host::Host;

/// `Some CPU, 4 of 8 cores, 16.0 GiB of memory`; `None` where the system tells nothing.
pub(super) fn in_words() -> Option<String> {
    let host = Host::read();
    machine(&EnvironmentBlock {
        cpu_model: host.cpu_model,
        cores_machine: host.cores,
        cores_usable: u32::try_from(usable_cores().len()).ok(),
        memory_bytes: host.memory_bytes,
        ..EnvironmentBlock::default()
    })
}
