#![doc = include_str!("../README.md")]

mod capture_session;
mod error;
mod open_transactions;
mod outbox;
mod partitions;
mod replication;
mod table_kind;

pub use outbox::{Outbox, OutboxReader, OutboxRemoval, OutboxSettings, OutboxStatus};
pub use replication::{
    ClusterCapture, DatabaseCapture, PublicationStatus, RaisedIdentity, Removal, Replication,
    ReplicationSettings, SlotStatus, StreamingNode, identify,
};
