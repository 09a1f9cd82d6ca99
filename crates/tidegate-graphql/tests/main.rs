//! The GraphQL API without a database.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

mod documents;
mod fixture;
mod large;
mod sdl;
mod subscriptions;
mod variables;
