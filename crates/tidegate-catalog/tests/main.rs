//! Tests of the catalog: models from documents, and from a real catalog.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

mod change_markers;
mod comparisons;
mod counting;
mod describe;
mod document;
mod fixture;
mod fresh;
mod groups;
mod incremental;
mod naming;
mod rights;
mod torture;
