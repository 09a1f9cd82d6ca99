//! Notifications about changed definitions, which an event trigger sends. The trigger exists only
//! if the service may create it.

use std::sync::LazyLock;

use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use tidegate_sql::DatabaseName;
use tidegate_wire::ConnectError;
use tokio_postgres::{AsyncMessage, Client, SimpleQueryMessage};
use tracing::debug;

use super::connect::{CONTROL, connect};
use super::{ServiceConnections, error};

/// The query that checks whether code of a database's users could run on shared connections. It
/// returns the objections to shared connections, with the SQL that removes them. `:source` is the
/// body of the trigger's function ([`event_trigger_source`]), and `:owner` the role of the tenant's
/// owner.
pub const DECIDE_SQL: &str = include_str!("decide.sql");

/// The SQL that creates the trigger's function. The function runs the query of `decide.sql` in the
/// session that changes a definition. In the function, the query skips two checks. The trigger is
/// not checked, because it calls the function. The tenant's owner is not checked, because a
/// definition cannot change the owner.
static FUNCTION: LazyLock<String> = LazyLock::new(|| {
    let decide = DECIDE_SQL
        .replace(":source::", "p.prosrc::")
        .replace(":owner::", "NULL::");
    include_str!("announce_function.sql").replace("/* decide.sql */", &decide)
});

/// Makes the trigger also fire in sessions with `session_replication_role = replica`.
const ENABLE_ALWAYS: &str = "ALTER EVENT TRIGGER tidegate_catalog ENABLE ALWAYS;\n";

/// The SQL that creates the trigger and the objects that it uses.
fn create_sql() -> String {
    [
        include_str!("announce.sql"),
        include_str!("objections.sql"),
        &FUNCTION,
        include_str!("announce_trigger.sql"),
        ENABLE_ALWAYS,
        OWN_SCHEMA,
        ";\nCOMMIT",
    ]
    .concat()
}

/// The SQL that updates the trigger and the objects that an older release created.
fn update_sql() -> String {
    [include_str!("objections.sql"), &FUNCTION, ENABLE_ALWAYS].concat()
}

/// Restricts the schema to the service.
const OWN_SCHEMA: &str = include_str!("own_schema.sql");

/// The body of the trigger's function.
pub fn event_trigger_source() -> &'static str {
    FUNCTION.split("$announce$").nth(1).unwrap_or_default()
}

/// Whether the function with this body is from this release or a later one. The version is the
/// number after `-- Version` in the body. Raise this number with every change of the function or of
/// `decide.sql`.
fn is_current(source: &str) -> bool {
    let own = event_trigger_source();
    source == own || version(source) > version(own)
}

fn version(source: &str) -> Option<u32> {
    let (_, rest) = source.split_once("-- Version ")?;
    let end = rest.find(|char: char| !char.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// Inspects the event trigger. The first column is the body of the trigger's function if the
/// trigger is enabled, the function and its schema have the same owner, and this owner is a
/// superuser or the service's role; otherwise it is NULL. The second column is true if the service
/// may create the trigger: the service is a superuser, and prepared transactions are disabled. They
/// must be disabled, because a transaction with NOTIFY cannot be prepared.
const INSPECT: &str = "SELECT made.source,
    (SELECT r.rolsuper
     AND pg_catalog.current_setting('max_prepared_transactions') OPERATOR(pg_catalog.=) '0'
     FROM pg_catalog.pg_roles r
     WHERE r.rolname OPERATOR(pg_catalog.=) current_user)
    FROM (SELECT) one LEFT JOIN (
    SELECT p.prosrc AS source
    FROM pg_catalog.pg_event_trigger e
    JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) e.evtfoid
    JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
    JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) p.proowner
        AND r.oid OPERATOR(pg_catalog.=) n.nspowner
    WHERE e.evtname OPERATOR(pg_catalog.=) 'tidegate_catalog'
    AND e.evtenabled OPERATOR(pg_catalog.=) ANY (ARRAY['O', 'A']::pg_catalog.\"char\"[])
    AND n.nspname OPERATOR(pg_catalog.=) 'tidegate_catalog'
    AND (r.rolsuper OR r.rolname OPERATOR(pg_catalog.=) current_user)) made ON true";

/// A notification about the definitions of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DdlNotification {
    /// Listening has begun. From now on every change of a definition is reported. Changes of roles
    /// and memberships are not reported, because these do not belong to a database.
    Listening,
    /// A definition has changed.
    Changed,
}

/// Why listening ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenEnd {
    /// The database has no event trigger, and the service may not create one.
    NoTrigger,
    /// The limit on listening connections is reached; see [`Limits`](super::Limits).
    LimitReached,
    /// The connection has ended.
    Ended,
}

impl ServiceConnections {
    /// Listens for notifications about a database's definitions, on a connection of its own, while
    /// the future is polled. Calls `report` when listening has begun, and for each notification.
    /// Creates the event trigger first if it is missing and the service may create it. Returns why
    /// listening ended.
    ///
    /// # Errors
    ///
    /// If the database cannot be reached.
    pub async fn ddl_notifications(
        &self,
        database: &DatabaseName,
        mut report: impl FnMut(DdlNotification) + Send,
    ) -> Result<ListenEnd, ConnectError> {
        let Some(_permit) = self.permits.listener() else {
            return Ok(ListenEnd::LimitReached);
        };
        let (client, mut connection) = connect(&self.config, database, CONTROL).await?;
        let mut messages = poll_fn(move |cx| connection.poll_message(cx));
        let mut begin = std::pin::pin!(begin(&client));
        let mut listening = false;
        loop {
            tokio::select! {
                () = self.permits.surplus() => return Ok(ListenEnd::LimitReached),
                has_trigger = &mut begin, if !listening => {
                    if !has_trigger.map_err(|error| error::of_connection(&error))? {
                        return Ok(ListenEnd::NoTrigger);
                    }
                    listening = true;
                    report(DdlNotification::Listening);
                }
                message = messages.next() => match message {
                    Some(Ok(AsyncMessage::Notification(_))) => report(DdlNotification::Changed),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error::of_connection(&error)),
                    None => return Ok(ListenEnd::Ended),
                }
            }
        }
    }
}

#[derive(Default)]
struct TriggerState {
    /// Whether the event trigger exists, is enabled and has a trusted owner; see [`INSPECT`].
    exists: bool,
    /// Whether the event trigger's function is from this release or a later one.
    current: bool,
    /// Whether the service may create the event trigger.
    may_create: bool,
}

/// Starts to listen. Returns `false`, and does not listen, if there is no trigger.
async fn begin(client: &Client) -> Result<bool, tokio_postgres::Error> {
    let exists = install_event_trigger(client).await?;
    if exists {
        client.batch_execute("LISTEN tidegate_catalog").await?;
    }
    Ok(exists)
}

/// Creates or updates the event trigger and the objects that it uses, if the service may. Returns
/// whether the trigger exists.
///
/// # Errors
///
/// If the connection fails.
pub async fn install_event_trigger(client: &Client) -> Result<bool, tokio_postgres::Error> {
    let mut found = inspect(client).await?;
    if !found.exists && found.may_create {
        // The creation fails if another node creates the trigger at the same time, or if the name
        // is in use.
        if let Err(error) = client.batch_execute(&create_sql()).await {
            debug!(%error, "the event trigger could not be created");
            client.batch_execute("ROLLBACK").await?;
        }
        found = inspect(client).await?;
    }
    if found.exists {
        // The update fails if the event trigger belongs to another administrator. The trigger is
        // then left unchanged.
        let update = if found.current {
            String::new()
        } else {
            update_sql()
        };
        for sql in [&*update, OWN_SCHEMA] {
            if let Err(error) = client.batch_execute(sql).await {
                debug!(%error, "the event trigger could not be updated");
            }
        }
    }
    Ok(found.exists)
}

async fn inspect(client: &Client) -> Result<TriggerState, tokio_postgres::Error> {
    let messages = client.simple_query(INSPECT).await?;
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let value = |place| row.and_then(|row| row.get(place));
    let source = value(0);
    Ok(TriggerState {
        exists: source.is_some(),
        current: source.is_some_and(is_current),
        may_create: value(1) == Some("t"),
    })
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn a_changed_function_has_another_version() {
        let digest = Sha256::digest(event_trigger_source().as_bytes());
        // Nodes accept a function with a higher version number than their own. Raise the number in
        // the function whenever this digest changes.
        assert_eq!(digest[..4], [0xfe, 0x02, 0x09, 0x8f]);
    }

    #[test]
    fn a_function_of_a_later_release_stays() {
        let own = event_trigger_source();
        let later = own.replace("-- Version 5.", "-- Version 10.\n-- More.");
        assert_ne!(own, later);
        for (source, stays) in [
            (own, true),
            (&later, true),
            (&format!("{own} -- altered"), false),
            (&own.replace("-- Version 5.", "-- Version 4."), false),
            ("begin end", false),
            ("-- Version x", false),
        ] {
            assert_eq!(is_current(source), stays, "{source}");
        }
    }
}
