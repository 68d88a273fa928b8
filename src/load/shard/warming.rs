//! Connections that stand before a leg begins.

use std::io;
use std::time::Duration;

use super::Shard;
use super::work::Work;
use crate::load::connection::{State, lane};
use crate::load::leg::Leg;
use crate::sys::epoll::Ready;

impl Shard {
    /// Opens what this shard's part of the plan's connections lacks, with TLS, and waits until each stands or has failed.
    pub(super) async fn warm(&mut self, work: &mut Work) -> io::Result<()> {
        let leg = work.leg.clone();
        let wanted = leg.connections.warm_of(self.place);
        for route in 0..leg.target.routes.len() {
            for _ in self.idle[lane(route, false)].len()..wanted {
                if self.pools.as_ref().is_some_and(|pools| !pools.may_open(route, self.place)) {
                    break;
                }
                match self.open_warm(&leg, route) {
                    Ok(()) => work.check.prewarmed += 1,
                    Err(_) => work.check.prewarm_failed += 1,
                }
            }
        }
        let give_up = self.pace.clock().now() + leg.limits.connect.min(WAIT_MAX);
        while self.connections.iter().any(|one| one.state == State::Warming) {
            if self.pace.clock().now() >= give_up {
                break;
            }
            self.tend_idle(Some(work))?;
            if self.connections.iter().any(|one| one.state == State::Warming) {
                self.pace.idle(give_up).await?;
            }
        }
        for slot in 0..self.connections.len() {
            if self.connections[slot].state == State::Warming {
                self.fail_warm(Some(work), slot);
            }
        }
        Ok(())
    }

    fn open_warm(&mut self, leg: &Leg, route: usize) -> io::Result<()> {
        let slot = self.spare_slot();
        let target = &leg.target.routes[route];
        let addresses = target.addresses.len();
        if leg.replicas.as_ref().is_some_and(|replicas| replicas.are_addresses()) && addresses > 1 {
            self.preferred[route] = (self.preferred[route] + 1) % addresses;
        }
        let connection = &mut self.connections[slot];
        (connection.route, connection.throttle) = (route, None);
        connection.address = self.preferred[route].min(addresses.saturating_sub(1));
        let opened = match target.addresses.get(connection.address) {
            Some(address) => connection.open(address, target.tls.as_ref(), self.wall.is_some()),
            None => Err(io::ErrorKind::AddrNotAvailable.into()),
        };
        let watched = opened.and_then(|()| {
            self.connections[slot].opened = self.pace.clock().now();
            self.connections[slot].state = State::Warming;
            self.watch(slot, true)
        });
        watched.inspect_err(|_| self.free(slot))
    }

    /// Goes on with a connection that is opened for no request.
    pub(super) fn on_warming(&mut self, work: Option<&mut Work>, slot: usize, ready: Ready) {
        match self.advance(slot, ready) {
            Ok(false) => {}
            Ok(true) => {
                if let (Some(work), Some((_, resumed))) = (work, self.connections[slot].handshake) {
                    work.check.on_handshake(resumed);
                }
                self.connections[slot].state = State::Idle;
                self.set_write_interest(slot, false);
                self.pool(slot);
            }
            Err(_) => self.fail_warm(work, slot),
        }
    }

    fn fail_warm(&mut self, work: Option<&mut Work>, slot: usize) {
        if let Some(work) = work {
            work.check.prewarmed -= 1;
            work.check.prewarm_failed += 1;
        }
        self.free(slot);
    }
}

/// Nobody waits longer for connections that no request has asked for.
const WAIT_MAX: Duration = Duration::from_secs(30);
