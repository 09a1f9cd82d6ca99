//! The control schema on a real PostgreSQL, and what every store must do.

mod migrations;
mod notices;
mod speed;
mod stage;
mod store;
mod tenants;
