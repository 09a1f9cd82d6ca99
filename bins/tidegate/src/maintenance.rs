//! Background work of a node: applies changes of other nodes and runs periodic tasks.

use std::sync::Arc;
use std::time::Duration;

use tidegate_catalog::CatalogCache;
use tidegate_feed::Feed;
use tidegate_methods::Registry;
use tidegate_oauth::Issuer;
use tidegate_server::App;
use tidegate_service::{Notification, ServiceConnections};
use tidegate_sql::DatabaseName;
use tidegate_store::Change;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{MissedTickBehavior, interval};

use crate::pool::UserPool;

/// The interval between reads of the ended sessions. It is short enough that every node refuses an
/// ended session within 5 s, even if notifications are lost.
const DENYLIST: Duration = Duration::from_secs(4);
/// The interval between checks whether external issuers have changed. The checks are needed,
/// because notifications may be lost.
const ISSUERS: Duration = Duration::from_secs(4);
/// The interval between reads of the signing keys. The reads are needed, because notifications may
/// be lost.
const KEYS: Duration = Duration::from_mins(1);
/// How long a changed method may stay cached if notifications are lost.
const METHODS: Duration = Duration::from_mins(1);
/// The interval between attempts to rotate the signing key and to delete expired rows.
const MAINTENANCE: Duration = Duration::from_hours(1);

/// Keeps the caches of a node current while [`run`](Self::run) is polled.
pub(crate) struct Maintenance {
    pub(crate) issuer: Arc<Issuer>,
    pub(crate) control: Arc<ServiceConnections>,
    pub(crate) app: App,
    pub(crate) methods: Arc<Registry>,
    pub(crate) pool: UserPool,
    pub(crate) catalogs: Arc<CatalogCache>,
    pub(crate) feed: Option<Feed>,
}

impl Maintenance {
    /// Applies changes and runs periodic tasks until the service connections close.
    pub(crate) async fn run(self) {
        let mut notifications = self.control.notifications();
        let [
            mut denylist,
            mut issuers,
            mut keys,
            mut methods,
            mut maintenance,
        ] = [DENYLIST, ISSUERS, KEYS, METHODS, MAINTENANCE].map(|period| {
            let mut interval = interval(period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        loop {
            tokio::select! {
                notice = notifications.recv() => match notice {
                    Ok(Notification::Received(text)) => self.apply(Change::parse(&text)).await,
                    Ok(Notification::Listening) => {
                        self.pool.resume();
                        if let Some(feed) = &self.feed {
                            feed.resume();
                        }
                        self.refresh().await;
                    }
                    Err(RecvError::Lagged(_)) => self.refresh().await,
                    Err(RecvError::Closed) => return,
                },
                _ = denylist.tick() => log("denylist", self.issuer.refresh_denylist().await),
                _ = issuers.tick() => self.reload_issuers().await,
                _ = keys.tick() => log("keys", self.issuer.refresh_keys().await),
                _ = methods.tick() => self.methods.forget_all(),
                _ = maintenance.tick() => log("maintenance", self.issuer.maintain().await),
            }
        }
    }

    async fn apply(&self, change: Option<Change>) {
        match change {
            Some(Change::Sessions) => log("denylist", self.issuer.refresh_denylist().await),
            Some(Change::Issuers) => self.reload_issuers().await,
            Some(Change::Keys) => log("keys", self.issuer.refresh_keys().await),
            Some(Change::Users(database) | Change::Settings(database)) => {
                self.app.forget_users(&database);
            }
            Some(Change::Tenant(database)) => {
                self.app.forget_users(&database);
                self.methods.forget_tenant(&DatabaseName::new(&database));
                self.pool.remove_database(&database);
                self.catalogs.forget(&DatabaseName::new(&database));
            }
            Some(Change::Method { database, name }) => {
                self.methods.forget(&DatabaseName::new(database), &[name]);
            }
            Some(Change::Methods(database)) => {
                self.methods.forget_tenant(&DatabaseName::new(database));
            }
            Some(Change::Client(_)) | None => {}
        }
    }

    async fn reload_issuers(&self) {
        let reloaded = self.app.reload_issuers().await;
        log(
            "issuers",
            reloaded.map_err(|error| tidegate_identity::Error::Store(error).into()),
        );
    }

    async fn refresh(&self) {
        self.methods.forget_all();
        self.reload_issuers().await;
        log("denylist", self.issuer.refresh_denylist().await);
        log("keys", self.issuer.refresh_keys().await);
    }
}

fn log(task: &'static str, done: tidegate_oauth::Result<()>) {
    if let Err(error) = done {
        tracing::warn!(task, %error, "periodic task failed; it will be retried");
    }
}
