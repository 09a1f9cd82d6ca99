#![doc = include_str!("../README.md")]

mod binaries;
mod cluster;
mod configuration;
mod directory;
mod error;
mod orphan;
mod port;
mod postmaster;
mod random;
mod server;
mod settings;
mod standby;
pub mod testing;
mod user;
mod version;
mod watcher;

pub use cluster::Cluster;
pub use error::{Error, Result};
pub use postmaster::Shutdown;
pub use settings::{DataDir, Settings, default_cache, default_directory};
pub use version::Version;
