//! The catalog's tests: the model from documents, and against a real catalog.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

mod comparisons;
mod describe;
mod document;
mod fresh;
mod incremental;
mod naming;
mod rights;
mod stage;
mod torture;
