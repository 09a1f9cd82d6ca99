//! What a database tells of its definitions, by an event trigger where we may have one.

use std::sync::LazyLock;

use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use tidegate_sql::DatabaseName;
use tidegate_wire::ConnectError;
use tokio_postgres::{AsyncMessage, Client, SimpleQueryMessage};
use tracing::debug;

use super::connect::{CONTROL, connect};
use super::{Control, refusal};

/// The query that finds code of a database's users which shared connections could reach, as objections
/// with their remedies. `:source` is the text of our trigger's function ([`source`]), `:owner` the
/// role of the tenant's owner.
pub const DECIDE_SQL: &str = include_str!("decide.sql");

/// The function behind the trigger. It asks of a user's session what `decide.sql` asks of a database.
/// The trigger is there, because it fires; who the tenant's owner is, a definition does not change.
static FUNCTION: LazyLock<String> = LazyLock::new(|| {
    let decide = DECIDE_SQL
        .replace(":source::", "p.prosrc::")
        .replace(":owner::", "NULL::");
    include_str!("announce_function.sql").replace("/* decide.sql */", &decide)
});

/// Fires in sessions that act as replicas too.
const ALWAYS: &str = "ALTER EVENT TRIGGER tidegate_catalog ENABLE ALWAYS;\n";

/// Makes the trigger.
fn make() -> String {
    [
        include_str!("announce.sql"),
        include_str!("objections.sql"),
        &FUNCTION,
        include_str!("announce_trigger.sql"),
        ALWAYS,
        OWN,
        ";\nCOMMIT",
    ]
    .concat()
}

/// Replaces what an older release made.
fn renew() -> String {
    [include_str!("objections.sql"), &FUNCTION, ALWAYS].concat()
}

/// Leaves what is ours to us alone.
const OWN: &str = include_str!("own_schema.sql");

/// The body of the function behind the trigger.
pub fn source() -> &'static str {
    FUNCTION.split("$announce$").nth(1).unwrap_or_default()
}

/// Whether the trigger is there, fires, and everything behind it is ours; whether it is as this
/// release or a later one makes it (`-- Version` in the function; raise both numbers with every
/// change of the function or of `decide.sql`); and whether we may make it, which only superusers may. Where transactions are
/// prepared there should be none: a transaction that has sent NOTIFY cannot be prepared.
const INSPECT: &str = "SELECT made.current IS NOT NULL, coalesce(made.current, false),
    (SELECT r.rolsuper
     AND pg_catalog.current_setting('max_prepared_transactions') OPERATOR(pg_catalog.=) '0'
     FROM pg_catalog.pg_roles r
     WHERE r.rolname OPERATOR(pg_catalog.=) current_user)
    FROM (SELECT) one LEFT JOIN (
    SELECT coalesce(pg_catalog.substring(p.prosrc, '-- Version ([0-9]+)')::pg_catalog.int4, 0)
        OPERATOR(pg_catalog.>=) 1 AS current
    FROM pg_catalog.pg_event_trigger e
    JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) e.evtfoid
    JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
    JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) p.proowner
        AND r.oid OPERATOR(pg_catalog.=) n.nspowner
    WHERE e.evtname OPERATOR(pg_catalog.=) 'tidegate_catalog'
    AND e.evtenabled OPERATOR(pg_catalog.=) ANY (ARRAY['O', 'A']::pg_catalog.\"char\"[])
    AND n.nspname OPERATOR(pg_catalog.=) 'tidegate_catalog'
    AND (r.rolsuper OR r.rolname OPERATOR(pg_catalog.=) current_user)) made ON true";

/// What is heard of a database's definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DdlNotification {
    /// From now on every change is told, but for those of roles and memberships, which are no part
    /// of a database.
    Listening,
    /// Something has changed.
    Changed,
}

/// Why nothing is heard any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenEnd {
    /// The database has no event trigger that tells, and we may not make one.
    NoTrigger,
    /// As many databases are listened to as [`Limits`](super::Limits) allow.
    NoRoom,
    /// The connection has ended.
    Ended,
}

impl Control {
    /// Listens to what a database tells of its definitions, on a connection of its own, for as long
    /// as it is polled; makes the event trigger that tells where that is allowed and needed.
    ///
    /// # Errors
    ///
    /// When the database cannot be reached.
    pub async fn ddl_notifications(
        &self,
        database: &DatabaseName,
        mut heard: impl FnMut(DdlNotification) + Send,
    ) -> Result<ListenEnd, ConnectError> {
        let Some(_permit) = self.permits.listener() else {
            return Ok(ListenEnd::NoRoom);
        };
        let (client, mut connection) = connect(&self.config, database, CONTROL).await?;
        let mut messages = poll_fn(move |cx| connection.poll_message(cx));
        let mut begin = std::pin::pin!(begin(&client));
        let mut listening = false;
        loop {
            tokio::select! {
                tells = &mut begin, if !listening => {
                    if !tells.map_err(|error| refusal::of_connection(&error))? {
                        return Ok(ListenEnd::NoTrigger);
                    }
                    listening = true;
                    heard(DdlNotification::Listening);
                }
                message = messages.next() => match message {
                    Some(Ok(AsyncMessage::Notification(_))) => heard(DdlNotification::Changed),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(refusal::of_connection(&error)),
                    None => return Ok(ListenEnd::Ended),
                }
            }
        }
    }
}

/// What was found of the trigger.
#[derive(Default)]
struct TriggerState {
    /// It is there.
    there: bool,
    /// As this release makes it.
    current: bool,
    /// We may make it.
    may_make: bool,
}

/// Listens; whether there is anything to hear.
async fn begin(client: &Client) -> Result<bool, tokio_postgres::Error> {
    let there = install(client).await?;
    if there {
        client.batch_execute("LISTEN tidegate_catalog").await?;
    }
    Ok(there)
}

/// Makes the event trigger and what belongs to it, or brings it up to date, where that is allowed;
/// answers whether it is there.
///
/// # Errors
///
/// When the connection fails.
pub async fn install(client: &Client) -> Result<bool, tokio_postgres::Error> {
    let mut found = inspect(client).await?;
    if !found.there && found.may_make {
        // Another node may be doing the same, or the name is taken.
        if let Err(error) = client.batch_execute(&make()).await {
            debug!(%error, "no event trigger");
            client.batch_execute("ROLLBACK").await?;
        }
        found = inspect(client).await?;
    }
    if found.there {
        // Not ours to change where another administrator made it.
        let renew = if found.current {
            String::new()
        } else {
            renew()
        };
        for sql in [&*renew, OWN] {
            if let Err(error) = client.batch_execute(sql).await {
                debug!(%error, "our schema stays as it is");
            }
        }
    }
    Ok(found.there)
}

async fn inspect(client: &Client) -> Result<TriggerState, tokio_postgres::Error> {
    let messages = client.simple_query(INSPECT).await?;
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let is = |place| row.and_then(|row| row.get(place)) == Some("t");
    Ok(TriggerState {
        there: is(0),
        current: is(1),
        may_make: is(2),
    })
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn a_changed_function_has_another_version() {
        let digest = Sha256::digest(source().as_bytes());
        // Installations are renewed by the version. Raise it in the function and in `INSPECT`
        // whenever this digest changes.
        assert_eq!(digest[..4], [0xf2, 0x66, 0xb6, 0xe3]);
    }
}
