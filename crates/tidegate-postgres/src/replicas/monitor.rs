//! Watches the position up to which a replica has replayed the WAL.

use std::sync::Arc;
use std::time::Duration;

use tidegate_pool::Pool;
use tidegate_service::{StandbyFault, StandbyWal};
use tidegate_sql::WalPosition;
use tidegate_wire::Config;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::primary::Primary;
use crate::connector::RoleConnector;

/// The delay between two queries of the replica's position.
const INTERVAL: Duration = Duration::from_millis(20);
/// The timeout for a response of a replica. A replica that does not respond in time is not used.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(250);
/// The time limit for opening the connection.
const OPEN: Duration = Duration::from_secs(5);
/// The delay before the next attempt to reach a replica.
const RETRY: Duration = Duration::from_secs(1);

/// Publishes the position up to which the replica has replayed the WAL; `None` while the replica
/// cannot be used. Runs until the future is dropped.
///
/// The position that a replica has replayed never decreases, so an outdated position is too small
/// at worst.
pub(super) async fn run(
    config: Arc<Config>,
    primary: Arc<Primary>,
    replayed: watch::Sender<Option<WalPosition>>,
    pool: Pool<RoleConnector>,
) {
    let mut logged = None;
    loop {
        let Err(fault) = observe(&config, &primary, (&replayed, &pool)).await;
        let was_used = replayed.send_replace(None).is_some();
        let reason = fault.to_string();
        if was_used || logged.as_ref() != Some(&reason) {
            let replica = config.addresses();
            tracing::warn!(
                replica,
                reason,
                "a replica is not used; its reads go to the primary"
            );
        }
        logged = Some(reason);
        sleep(RETRY).await;
    }
}

async fn observe(
    config: &Config,
    primary: &Primary,
    (replayed, pool): (&watch::Sender<Option<WalPosition>>, &Pool<RoleConnector>),
) -> Result<std::convert::Infallible, StandbyFault> {
    let open = timeout(OPEN, open(config, primary)).await;
    let connection = open.unwrap_or(Err(StandbyFault::Silent))?;
    loop {
        let asked = timeout(RESPONSE_TIMEOUT, connection.replayed()).await;
        let position = asked.unwrap_or(Err(StandbyFault::Silent))?;
        let before = replayed.send_replace(Some(position));
        if before.is_none() {
            pool.resume();
            tracing::info!(replica = config.addresses(), "a replica is used for reads");
        }
        sleep(INTERVAL).await;
    }
}

async fn open(config: &Config, primary: &Primary) -> Result<StandbyWal, StandbyFault> {
    StandbyWal::open(config, primary.cluster().await?).await
}
