//! Describes a server: `examine_server <url>`, or a throw-away PostgreSQL if no URL is given.

#![expect(clippy::print_stdout, reason = "the example's output")]

use std::error::Error;

use tidegate_admin::{Admin, RolePasswords};
use tidegate_wire::Config;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = match std::env::args().nth(1) {
        Some(url) => url,
        None => tidegate_embedded::testing::cluster().url("postgres"),
    };
    // A service passes random bytes, which become the salts of passwords.
    let passwords = RolePasswords::new([7; 32], || [0; 16]);
    let admin = Admin::new(Config::from_url(&url)?, passwords);
    let server = admin.server().await?;
    println!("version {}", server.version);
    println!("{} connections", server.max_connections);
    println!("{} reserved", server.reserved_connections);
    Ok(())
}
