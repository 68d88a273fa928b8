//! A slab whose keys are never mistaken for those of an earlier tenant: a late cancellation finds nothing instead of
//! a stranger.

/// Key of one entry: place and number of earlier tenants of the place. Fits into an epoll token, for those who keep sockets in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u64);

/// Entries in places that are used again.
#[derive(Debug)]
pub(crate) struct Keyed<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    /// Number of earlier tenants, modulo 2^31: keys stay below 2^63, apart from tokens of the pace's own.
    tenancy: u32,
    entry: Option<T>,
}

impl Key {
    /// The key as an epoll token, below 2^63.
    pub(crate) fn token(self) -> u64 {
        self.0
    }

    /// The key of a token that [`Key::token`] made.
    pub(crate) fn from_token(token: u64) -> Key {
        Key(token)
    }

    fn place(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }

    fn tenancy(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl<T> Keyed<T> {
    pub(crate) fn new() -> Keyed<T> {
        Keyed { places: Vec::new(), free: Vec::new() }
    }

    /// Stores an entry. At most 2^32 entries fit; descriptors and memory end long before.
    pub(crate) fn insert(&mut self, entry: T) -> Key {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { tenancy: 0, entry: None });
            (self.places.len() - 1) as u32
        });
        let slot = &mut self.places[place as usize];
        slot.entry = Some(entry);
        Key(u64::from(slot.tenancy) << 32 | u64::from(place))
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.places.get_mut(key.place())?;
        if slot.tenancy == key.tenancy() { slot.entry.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.places.get_mut(key.place())?;
        if slot.tenancy != key.tenancy() {
            return None;
        }
        let entry = slot.entry.take()?;
        slot.tenancy = (slot.tenancy + 1) & (u32::MAX >> 1);
        self.free.push(key.place() as u32);
        Some(entry)
    }

    /// The keys of all entries.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let places = self.places.iter().enumerate();
        let taken = places.filter(|(_, slot)| slot.entry.is_some());
        taken.map(|(place, slot)| Key(u64::from(slot.tenancy) << 32 | place as u64)).collect()
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_key_does_not_find_the_next_tenant() {
        let mut slab = Keyed::new();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second");
        assert_eq!(second.place(), first.place());
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get_mut(Key::from_token(second.token())), Some(&mut "second"));
        assert_eq!(slab.len(), 1);
    }
}
