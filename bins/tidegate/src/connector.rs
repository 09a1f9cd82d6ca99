//! Connectors, which open connections that log in with users' roles.

use std::sync::Arc;

use tidegate_admin::RoleCredentials;
use tidegate_postgres::RoleConnector;
use tidegate_sql::Executor;
use tidegate_wire::{BackendTerminator, Config};

use crate::cli_error::Result;
use crate::service::Service;

/// Creates a connector to the server in `admin_url`, the primary. `version` is its
/// `server_version_num`.
pub(crate) fn connector(service: &Service, version: u32) -> Result<RoleConnector> {
    let terminator = service.control.clone();
    connector_with(service, service.config.clone(), terminator, version)
}

/// Creates a connector to another server of the cluster, `config`. `terminator` ends backends
/// there.
pub(crate) fn connector_to(
    service: &Service,
    config: Arc<Config>,
    terminator: Arc<dyn BackendTerminator>,
) -> Result<RoleConnector> {
    connector_with(service, config, terminator, service.server.version)
}

fn connector_with(
    service: &Service,
    config: Arc<Config>,
    terminator: Arc<dyn BackendTerminator>,
    version: u32,
) -> Result<RoleConnector> {
    let control: Arc<dyn Executor> = service.control.clone();
    let credentials = RoleCredentials::new(control, service.passwords.clone(), version)?;
    Ok(RoleConnector::new(
        config,
        Arc::new(credentials),
        terminator,
    ))
}
