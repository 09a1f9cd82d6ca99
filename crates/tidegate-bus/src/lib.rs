#![doc = include_str!("../README.md")]

mod backoff;
pub mod batch;
mod bus;
pub mod chain;
mod connection;
mod database;
mod election;
mod error;
pub mod follower;
mod joined;
mod kept_messages;
pub mod message;
mod nats;
pub mod place;
mod reader;
mod report;
pub mod seal;
mod settings;
mod shared;
mod status;
mod stored;
mod stream;

pub use bus::Bus;
pub use error::{BusError, BusResult};
pub use report::BusReport;
pub use settings::BusSettings;
pub use status::{BusStatus, DatabaseRole};
