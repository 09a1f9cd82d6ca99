//! The feed of changes: on where PostgreSQL's log can be read.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use tidegate_feed::{Feed, Settings as FeedSettings};
use tidegate_postgres::admin::RoleCredentials;
use tidegate_postgres::{Replication, ReplicationSettings};
use tidegate_server::{MetricsSource, Probe};
use tidegate_sql::{BoxFuture, Executor};

use crate::failure::Result;
use crate::service::{self, Service};
use crate::settings::Settings;

/// The feed; nothing where the log cannot be read, which is said in the log of the service.
pub(crate) async fn open(
    service: &Service,
    settings: &Settings,
    executor: Arc<dyn Executor>,
) -> Result<Option<Feed>> {
    let reader = service::replication_config(settings)?;
    if let Some(reason) = service.admin.why_no_changes(&reader).await? {
        tracing::warn!(reason, "feeds no changes");
        return Ok(None);
    }
    let version = service.admin.server().await?.version;
    let control: Arc<dyn Executor> = service.control.clone();
    let owners = RoleCredentials::new(control, service.passwords.clone(), version)?;
    let log = Replication::new(
        reader,
        (*service.config).clone(),
        Some(Arc::new(owners)),
        ReplicationSettings::default(),
    );
    let settings = FeedSettings::default();
    Ok(Some(Feed::new(Arc::new(log), executor, settings)))
}

/// The feed on `/readyz` and `/metrics`.
pub(crate) struct FeedStatus(pub(crate) Option<Feed>);

impl Probe for FeedStatus {
    fn name(&self) -> &'static str {
        "feed"
    }

    /// Requests are answered without it.
    fn is_essential(&self) -> bool {
        false
    }

    fn is_ready(&self) -> BoxFuture<'_, bool> {
        let live = |feed: &Feed| feed.status().iter().all(|database| database.live);
        Box::pin(std::future::ready(self.0.as_ref().is_some_and(live)))
    }
}

impl MetricsSource for FeedStatus {
    fn write(&self, text: &mut String) -> fmt::Result {
        let status = self.0.as_ref().map(Feed::status).unwrap_or_default();
        for (name, help) in [
            ("tidegate_feed_subscriptions", "Subscriptions to changes."),
            (
                "tidegate_feed_live",
                "Whether the log of the database is read.",
            ),
            (
                "tidegate_feed_position",
                "Up to where changes were handed out.",
            ),
        ] {
            writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge")?;
            for database in &status {
                let value = match name {
                    "tidegate_feed_subscriptions" => database.subscriptions as u64,
                    "tidegate_feed_live" => u64::from(database.live),
                    _ => database.reached.0,
                };
                writeln!(
                    text,
                    "{name}{{database={:?}}} {value}",
                    database.database.as_str()
                )?;
            }
        }
        Ok(())
    }
}
