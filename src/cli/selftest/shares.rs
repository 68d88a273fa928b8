//! How client and server share the machine: which cores each has, and how many streams both can hold.

use serde::{Deserialize, Serialize};

/// Cores of client and server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cores {
    /// Those of the client, one thread each.
    pub(crate) client: Vec<u32>,
    /// Those of the server, one thread each.
    pub(crate) server: Vec<u32>,
    /// They are the same: each takes time from the other, and what is measured is worse than a client alone.
    pub(crate) shared: bool,
}

impl Cores {
    /// Shares `usable` out: the upper half to the server, the rest, with the middle one, to the client. A single core is
    /// shared. Empty lists, without pinning, where the system does not say what is usable.
    pub(super) fn split(usable: &[u32]) -> Cores {
        if usable.len() < 2 {
            return Cores { client: usable.to_vec(), server: usable.to_vec(), shared: true };
        }
        let (client, server) = usable.split_at(usable.len().div_ceil(2));
        Cores { client: client.to_vec(), server: server.to_vec(), shared: false }
    }

    /// Threads of the client.
    pub(super) fn shards(&self) -> u32 {
        threads(&self.client)
    }

    /// Threads of the server.
    pub(super) fn workers(&self) -> u32 {
        threads(&self.server)
    }
}

fn threads(cores: &[u32]) -> u32 {
    u32::try_from(cores.len()).unwrap_or(u32::MAX).max(1)
}

/// What bounds the number of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Descriptors that a process may have. The server, our child, may have as many as we; each needs one per stream.
    pub(super) descriptors: u64,
    /// Local ports that the system gives to connections; all of ours go to one port of the server, so that each needs one.
    pub(super) ports: Option<u64>,
}

impl Room {
    /// Most streams that both processes can hold.
    pub(super) fn streams_max(self) -> u32 {
        let descriptors = self.descriptors.saturating_sub(OWN_DESCRIPTORS);
        let ports = self.ports.map_or(u64::MAX, |ports| ports.saturating_sub(OTHERS_PORTS));
        u32::try_from(descriptors.min(ports)).unwrap_or(u32::MAX)
    }

    /// Why there are no more, in words.
    pub(super) fn bound(self) -> String {
        match self.ports {
            Some(ports)
                if ports.saturating_sub(OTHERS_PORTS) < self.descriptors.saturating_sub(OWN_DESCRIPTORS) =>
            {
                format!("the system has {ports} local ports for connections (net.ipv4.ip_local_port_range)")
            }
            _ => format!("a process may have {} open files here (ulimit -n)", self.descriptors),
        }
    }
}

/// Descriptors of a process beside one per stream: sockets to listen on, epolls, timers and files of its threads.
const OWN_DESCRIPTORS: u64 = 256;
/// Ports that others of the machine may hold.
const OTHERS_PORTS: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_has_other_cores_where_there_are_any() {
        let split = |usable: &[u32]| {
            let Cores { client, server, shared } = Cores::split(usable);
            (client, server, shared)
        };
        assert_eq!(split(&[3]), (vec![3], vec![3], true));
        assert_eq!(split(&[0, 1]), (vec![0], vec![1], false));
        assert_eq!(split(&[0, 2, 4]), (vec![0, 2], vec![4], false));
        assert_eq!(split(&[0, 1, 2, 3]), (vec![0, 1], vec![2, 3], false));
        assert_eq!(split(&[]), (vec![], vec![], true));
        assert_eq!((Cores::split(&[]).shards(), Cores::split(&[0, 1, 2]).workers()), (1, 1));
    }

    #[test]
    fn streams_are_bounded_by_descriptors_and_by_ports() {
        let room = |descriptors, ports| Room { descriptors, ports };
        assert_eq!(room(20_000, Some(28_232)).streams_max(), 19_744);
        assert!(room(20_000, Some(28_232)).bound().contains("20000 open files"));
        assert_eq!(room(1 << 20, Some(28_232)).streams_max(), 27_208);
        assert!(room(1 << 20, Some(28_232)).bound().contains("28232 local ports"));
        assert_eq!((room(100, None).streams_max(), room(u64::MAX, None).streams_max()), (0, u32::MAX));
    }
}
