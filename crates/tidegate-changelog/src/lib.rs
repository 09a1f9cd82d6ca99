#![doc = include_str!("../README.md")]

mod change_log;
mod error;
mod position;
mod shared_log;

pub use change_log::{Captured, ChangeLog, Demand, LogMessage, LogStart, LogStream};
pub use error::{LogError, LogResult};
pub use position::{Lineage, LogIdentity, LogPosition};
pub use shared_log::SharedLog;
