//! A number that may be missing, in the room of the number alone.

use std::fmt;

/// An `Option` of a number that takes no more room than the number: its largest value stands for none.
///
/// Records are kept and walked over by the hundred thousand, and three lines of the cache instead of four are what
/// these save.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Maybe<T>(T);

/// What [`Maybe`] can hold.
pub trait Number: Copy + Eq {
    /// What stands for none.
    const NONE: Self;
    /// What it would be taken for otherwise: the number below.
    const HIGHEST: Self;
}

impl Number for u32 {
    const NONE: u32 = u32::MAX;
    const HIGHEST: u32 = u32::MAX - 1;
}

impl Number for u64 {
    const NONE: u64 = u64::MAX;
    const HIGHEST: u64 = u64::MAX - 1;
}

impl<T: Number> Maybe<T> {
    /// No number.
    pub const NONE: Maybe<T> = Maybe(T::NONE);

    /// The number, if there is one.
    #[must_use]
    #[inline]
    pub fn get(self) -> Option<T> {
        (self.0 != T::NONE).then_some(self.0)
    }

    /// Whether there is a number.
    #[must_use]
    #[inline]
    pub fn is_some(self) -> bool {
        self.0 != T::NONE
    }
}

impl<T: Number> Default for Maybe<T> {
    fn default() -> Maybe<T> {
        Maybe::NONE
    }
}

/// The largest value of all becomes the one below it.
impl<T: Number> From<Option<T>> for Maybe<T> {
    #[inline]
    fn from(number: Option<T>) -> Maybe<T> {
        match number {
            Some(number) if number == T::NONE => Maybe(T::HIGHEST),
            Some(number) => Maybe(number),
            None => Maybe::NONE,
        }
    }
}

impl<T: Number> From<T> for Maybe<T> {
    #[inline]
    fn from(number: T) -> Maybe<T> {
        Some(number).into()
    }
}

impl<T: Number + fmt::Debug> fmt::Debug for Maybe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_it_was_made_of_in_half_the_room() {
        for number in [None, Some(0), Some(1), Some(u32::MAX - 1)] {
            assert_eq!(Maybe::from(number).get(), number);
            assert_eq!(Maybe::from(number).is_some(), number.is_some());
        }
        assert_eq!(Maybe::from(u32::MAX).get(), Some(u32::MAX - 1), "the largest stands for none");
        assert_eq!(Maybe::from(u64::MAX).get(), Some(u64::MAX - 1));
        assert_eq!(Maybe::<u64>::default(), None.into());
        assert_eq!(format!("{:?} {:?}", Maybe::from(7_u32), Maybe::<u32>::NONE), "Some(7) None");
        assert_eq!((size_of::<Maybe<u32>>(), size_of::<Maybe<u64>>()), (4, 8));
    }
}
