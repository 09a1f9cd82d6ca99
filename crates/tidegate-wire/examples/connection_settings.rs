//! Prints the settings in a connection URL: `connection_settings <url>`.

#![expect(clippy::print_stdout, reason = "the example's output")]

use tidegate_wire::{Config, ConfigError};

fn main() -> Result<(), ConfigError> {
    let url = std::env::args().nth(1);
    let config = Config::from_url(
        url.as_deref()
            .unwrap_or("postgresql://me@localhost/postgres"),
    )?;
    println!("targets: {}", config.addresses());
    println!("TLS: {:?}", config.tls);
    println!("role: {}", config.admin_role);
    println!("database: {}", config.admin_database);
    Ok(())
}
