//! Decides which subscriptions get a change.

pub(crate) mod backlog;
pub(crate) mod case_folding;
pub(crate) mod connection;
pub(crate) mod encoder;
pub(crate) mod hub;
pub(crate) mod index;
pub(crate) mod predicate;
pub(crate) mod queue;
pub(crate) mod ring;
pub(crate) mod shared_hub;
pub(crate) mod subscriber;
pub(crate) mod table;
