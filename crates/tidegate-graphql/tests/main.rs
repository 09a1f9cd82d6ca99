//! Tests of the GraphQL API without a database.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

mod documents;
mod execution;
mod fixture;
mod large;
mod many;
mod sdl;
mod subscriptions;
mod templates;
mod variables;
