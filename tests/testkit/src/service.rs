//! The service's connections to a control database.

use std::sync::Arc;

use tidegate_service::ServiceConnections;
use tidegate_sql::DatabaseName;
use tidegate_wire::Config;
use tidegate_wire::backoff::Jitter;

/// A configuration with the login of this URL, and with this control database.
///
/// # Panics
///
/// If the URL is invalid.
pub fn config(url: &str, control_database: &str) -> Config {
    let mut config = Config::from_url(url).unwrap();
    config.control_database = DatabaseName::new(control_database);
    config
}

/// The connections of a service with this configuration.
///
/// # Panics
///
/// If the configuration is invalid.
pub fn service_connections(config: Config) -> ServiceConnections {
    ServiceConnections::new(Arc::new(config), Jitter::none()).unwrap()
}
