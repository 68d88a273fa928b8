//! A value of another room, stored word for word.

use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::{json_of, without_place};

/// A `T` as JSON, understood only when it is asked for.
///
/// Plans refuse keys that they do not know, rightly: half a plan must not be run. A stored run must be shown all the
/// same, hence this distance.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub struct Verbatim<T> {
    value: Value,
    #[serde(skip)]
    of: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> Verbatim<T> {
    /// Stores `value`.
    ///
    /// A value that JSON cannot hold becomes `null`, which [`Verbatim::read`] will refuse.
    #[must_use]
    pub fn of(value: &T) -> Verbatim<T> {
        Verbatim { value: json_of(value), of: PhantomData }
    }

    /// A value of which only a part is known, as JSON; the rest has its defaults when it is read.
    #[must_use]
    pub fn partial(value: Value) -> Verbatim<T> {
        Verbatim { value, of: PhantomData }
    }

    /// `null`, for a value that is not known: [`Verbatim::read`] refuses it.
    #[must_use]
    pub fn unknown() -> Verbatim<T> {
        Verbatim::partial(Value::Null)
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// When it has a key or a form that this tokload does not know.
    pub fn read(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.value.to_string())
            .map_err(|error| serde_json::Error::custom(without_place(&error)))
    }
}

impl<T> Clone for Verbatim<T> {
    fn clone(&self) -> Verbatim<T> {
        Verbatim { value: self.value.clone(), of: PhantomData }
    }
}

impl<T> PartialEq for Verbatim<T> {
    fn eq(&self, other: &Verbatim<T>) -> bool {
        self.value == other.value
    }
}

impl<T> std::fmt::Debug for Verbatim<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value.fmt(f)
    }
}
