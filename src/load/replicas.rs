//! Which replica answered: one of the addresses of an endpoint's name, or what a response header says.
//!
//! Looked at once per request, when it ends. A name that a shard has met before is found in its own table; the table that
//! all shards share, which gives the numbers, is only asked for new ones.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::load::target::Target;
use crate::metrics::Record;
use crate::plan::Plan;

/// The replicas of one leg.
#[derive(Debug)]
pub(crate) struct Replicas {
    names: Mutex<Vec<String>>,
    /// Of each route the place of its first address, where addresses are told apart.
    firsts: Option<Box<[usize]>>,
}

/// The names that a shard has met, with their places.
pub(crate) type Known = HashMap<String, u16>;

impl Replicas {
    /// What the plan tells replicas apart by; `None` if by nothing.
    pub(crate) fn of(plan: &Plan, target: &Target) -> Option<Replicas> {
        if plan.target.replica_header.is_some() {
            return Some(Replicas { names: Mutex::default(), firsts: None });
        }
        plan.target.all_addresses.then(|| {
            let (mut names, mut firsts) = (Vec::new(), Vec::new());
            for route in &target.routes {
                firsts.push(names.len());
                names.extend(route.addresses.iter().map(ToString::to_string));
            }
            Replicas { names: Mutex::new(names), firsts: Some(firsts.into()) }
        })
    }

    /// Whether connections go to all addresses of a name, which are the replicas.
    pub(crate) fn are_addresses(&self) -> bool {
        self.firsts.is_some()
    }

    /// The replica at so manyth address of `route`; `None` where these are not told apart, or there are too many.
    pub(crate) fn at(&self, route: usize, address: usize) -> Option<u16> {
        let first = self.firsts.as_ref()?.get(route)?;
        u16::try_from(first + address).ok().filter(|place| *place < Record::REPLICAS_MAX)
    }

    /// The replica that calls itself `name`; `None` where there are so many that it has no number.
    pub(crate) fn named(&self, name: &str, known: &mut Known) -> Option<u16> {
        if let Some(place) = known.get(name) {
            return Some(*place);
        }
        if known.len() >= usize::from(Record::REPLICAS_MAX) {
            return None;
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let place = names.iter().position(|one| one == name).unwrap_or(names.len());
        let number = u16::try_from(place).ok().filter(|place| *place < Record::REPLICAS_MAX)?;
        if place == names.len() {
            names.push(name.to_owned());
        }
        known.insert(name.to_owned(), number);
        Some(number)
    }

    /// The names so far, by their places.
    pub(crate) fn names(&self) -> Vec<String> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_agree_on_the_numbers_and_names_are_bounded() {
        let all = Replicas { names: Mutex::default(), firsts: None };
        let (mut one, mut other) = (Known::new(), Known::new());
        assert_eq!((all.named("a", &mut one), all.named("b", &mut one)), (Some(0), Some(1)));
        assert_eq!((all.named("b", &mut other), all.named("a", &mut other)), (Some(1), Some(0)));
        for n in 2..Record::REPLICAS_MAX {
            assert_eq!(all.named(&n.to_string(), &mut one), Some(n));
        }
        assert_eq!((all.named("c", &mut one), all.named("c", &mut other)), (None, None));
        assert_eq!(all.names().len(), usize::from(Record::REPLICAS_MAX));
        assert_eq!(all.at(0, 0), None);
    }

    #[test]
    fn addresses_of_several_names_are_numbered_in_a_row() {
        let all = Replicas { names: Mutex::default(), firsts: Some([0, 2].into()) };
        assert_eq!(
            (all.at(0, 1), all.at(1, 0), all.at(1, 3), all.at(2, 0)),
            (Some(1), Some(2), Some(5), None)
        );
    }
}
