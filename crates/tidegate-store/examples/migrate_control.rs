//! Creates a control schema, claims it for a master key, and stores a user.
//!
//! `cargo run -p tidegate-store --example migrate_control` starts a private PostgreSQL;
//! `… -- postgresql://user:password@host/database` uses the database named.

use std::error::Error;
use std::sync::Arc;

use tidegate_identity::{IdentityStore as _, Timestamp, User, UserKey};
use tidegate_service::ServiceConnections;
use tidegate_sql::Executor;
use tidegate_store::{PgOauthStore, migrate};
use tidegate_wire::Config;
use tidegate_wire::backoff::Jitter;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = match std::env::args().nth(1) {
        Some(url) => url,
        None => tidegate_embedded::testing::cluster().url("postgres"),
    };
    let mut config = Config::from_url(&url)?;
    config.control_database = config.admin_database.clone();
    let control: Arc<dyn Executor> =
        Arc::new(ServiceConnections::new(Arc::new(config), Jitter::none())?);

    for _ in 0..2 {
        let migrated = migrate(&control).await?;
        println!("from version {} to {}", migrated.from, migrated.to);
    }

    let store = PgOauthStore::new(control);
    store.check_master_key("a fingerprint").await?;
    if let Err(error) = store.check_master_key("another").await {
        println!("{error}");
    }

    let user = User {
        key: UserKey::new("shop", "alice"),
        role: Some("shop/alice".to_owned()),
        id: None,
        password_hash: None,
        email: Some("alice@example.org".to_owned()),
        confirmed_email: None,
        properties: None,
        user_groups: Vec::new(),
        default_user: false,
        disabled: false,
        created_at: Timestamp::from_seconds(0),
    };
    println!("inserted: {:?}", store.insert_user(&user).await?);
    println!("inserted again: {:?}", store.insert_user(&user).await?);
    println!("found: {:?}", store.user(&user.key).await?);
    Ok(())
}
