#![doc = include_str!("../README.md")]

mod actor;
mod outbox;
mod partitions;
mod refusal;
mod replication;
mod table_kind;
mod writers;

pub use outbox::{Outbox, OutboxReader, OutboxRemoval, OutboxSettings, OutboxStatus};
pub use replication::{
    ClusterCapture, DatabaseCapture, PublicationStatus, RaisedIdentity, Removal, Replication,
    ReplicationSettings, SlotStatus, StreamingServer, identify,
};
