#![doc = include_str!("../README.md")]

pub mod batch;
pub mod chain;
mod error;
pub mod follower;
pub mod message;
mod nats;
pub mod place;
pub mod seal;
mod settings;

pub use error::{BusError, BusResult};
pub use settings::BusSettings;
