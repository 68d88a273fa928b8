//! Placeholder: the JSON scan is written elsewhere.
