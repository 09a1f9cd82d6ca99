//! A control database for one test.

use std::sync::Arc;
use std::time::Duration;

use tidegate_methods::MethodStore;
use tidegate_oauth::IssuerStore;
use tidegate_service::{Notification, ServiceConnections};
use tidegate_sql::Executor;
use tidegate_store::{PgMethodStore, PgOauthStore, migrate};
use tidegate_testkit::{config, service_connections, soon};
use tokio::sync::broadcast::Receiver;
use tokio_postgres::Client;

/// An empty control database.
pub(crate) struct Fixture {
    pub(crate) control: Arc<ServiceConnections>,
    /// A second connection to the database.
    pub(crate) beside: Client,
    name: String,
}

impl Fixture {
    pub(crate) async fn empty(name: &str) -> Self {
        let beside = tidegate_testkit::database(name, "").await;
        Self {
            control: Arc::new(connections(name)),
            beside,
            name: name.to_owned(),
        }
    }

    pub(crate) async fn migrated(name: &str) -> Self {
        let fixture = Self::empty(name).await;
        migrate(&fixture.executor()).await.unwrap();
        fixture
    }

    pub(crate) fn executor(&self) -> Arc<dyn Executor> {
        self.control.clone()
    }

    /// The executor of another node.
    pub(crate) fn another(&self) -> Arc<dyn Executor> {
        Arc::new(connections(&self.name))
    }

    pub(crate) fn store(&self) -> Arc<dyn IssuerStore> {
        Arc::new(PgOauthStore::new(self.executor()))
    }

    pub(crate) fn methods(&self) -> Arc<dyn MethodStore> {
        Arc::new(PgMethodStore::new(self.executor()))
    }
}

/// The service's connections to a control database.
pub(crate) fn connections(database: &str) -> ServiceConnections {
    let url = tidegate_embedded::testing::cluster().admin_url();
    service_connections(config(&url, database))
}

/// Starts to listen for notifications. It sends probes until one arrives, which proves that
/// notifications are received. More probes may follow.
pub(crate) async fn listening(fixture: &Fixture) -> Receiver<Notification> {
    let mut notifications = fixture.control.notifications();
    let probe = async {
        loop {
            let say = "select pg_notify('tidegate', 'probe')";
            fixture.beside.batch_execute(say).await.unwrap();
            let wait = Duration::from_millis(100);
            if let Ok(received) = tokio::time::timeout(wait, notifications.recv()).await
                && received.unwrap() == Notification::Received("probe".into())
            {
                return;
            }
        }
    };
    soon(probe).await;
    notifications
}
