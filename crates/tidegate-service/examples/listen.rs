//! Sends a notification through the control database and receives it.
//!
//! `cargo run -p tidegate-service --example listen` starts a throw-away PostgreSQL. An argument
//! such as `postgresql://user:password@host/database` names a database to use instead.

#![expect(clippy::print_stdout, reason = "the example's output")]

use std::error::Error;
use std::sync::Arc;

use tidegate_service::{CHANNEL, Notification, ServiceConnections};
use tidegate_wire::Config;
use tidegate_wire::backoff::Jitter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = match std::env::args().nth(1) {
        Some(url) => url,
        None => tidegate_embedded::testing::cluster().url("postgres"),
    };
    let mut config = Config::from_url(&url)?;
    config.control_database = config.admin_database.clone();
    let control = ServiceConnections::new(Arc::new(config.clone()), Jitter::none())?;
    let mut notifications = control.notifications();
    loop {
        match notifications.recv().await? {
            Notification::Listening => {
                let other = tidegate_service::open(&config, &config.control_database).await?;
                let notify = format!("NOTIFY {CHANNEL}, 'hello'");
                other.batch_execute(&notify).await?;
            }
            Notification::Received(text) => {
                println!("{text}");
                return Ok(());
            }
        }
    }
}
