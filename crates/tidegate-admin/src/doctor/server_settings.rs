//! Checks the server's settings, and returns the commands that change settings.

use tidegate_service::{Limits, shared_connections};

use super::super::Result;
use super::super::session::Session;
use super::Finding;

/// Settings that Patroni passes to PostgreSQL on the command line. If all of them are on the
/// command line, Patroni has started the server, because nothing else puts all of them there.
const PATRONI: [&str; 5] = [
    "cluster_name",
    "hot_standby",
    "max_wal_senders",
    "wal_level",
    "wal_log_hints",
];

/// How an operator changes settings of the server: with `ALTER SYSTEM`, or through Patroni.
pub(super) struct SettingChange {
    /// The name of the cluster in Patroni, if Patroni started the server.
    patroni: Option<String>,
    /// The settings of the server's command line. `ALTER SYSTEM` has no effect on them.
    command_line: Vec<String>,
}

/// When a changed setting takes effect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// After a restart of the server.
    Restart,
    /// After the server has reloaded its configuration.
    Reload,
}

impl SettingChange {
    pub(super) async fn read(session: &Session) -> Result<Self> {
        let row = session
            .client
            .query_one(
                "SELECT pg_catalog.current_setting('cluster_name'), \
                        ARRAY(SELECT name FROM pg_catalog.pg_settings WHERE source = 'command line')",
                &[],
            )
            .await?;
        Ok(Self::of(row.get(0), row.get(1)))
    }

    fn of(cluster_name: String, command_line: Vec<String>) -> Self {
        let given = |name: &&str| command_line.iter().any(|it| it == name);
        let is_patroni = PATRONI.iter().all(given);
        Self {
            patroni: is_patroni.then_some(cluster_name),
            command_line,
        }
    }

    /// The command that changes a setting. If Patroni started the server, it is a command of
    /// `patronictl`, because Patroni overrides what `ALTER SYSTEM` sets.
    pub(super) fn command(&self, name: &str, value: &str, effect: Effect) -> String {
        if let Some(cluster) = &self.patroni {
            let cluster = shell_word(cluster);
            let edit = format!("patronictl edit-config {cluster} --pg {name}={value}");
            return match effect {
                Effect::Restart => format!("{edit}\npatronictl restart {cluster}"),
                Effect::Reload => edit,
            };
        }
        if self.command_line.iter().any(|it| it == name) {
            return format!(
                "-- {name} = {value}, on the command line with which the server is started: \
                 ALTER SYSTEM does not override it"
            );
        }
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let quote = if is_number { "" } else { "'" };
        let set = format!("ALTER SYSTEM SET {name} = {quote}{value}{quote};");
        match effect {
            Effect::Restart => set,
            Effect::Reload => format!("{set} SELECT pg_reload_conf();"),
        }
    }
}

/// Quotes a text for a shell, if necessary.
fn shell_word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(super) async fn check(session: &Session, nodes: u32) -> Result<Vec<Finding>> {
    let row = session
        .client
        .query_one(
            "SELECT pg_catalog.current_setting('max_connections')::int4 \
                    - pg_catalog.current_setting('superuser_reserved_connections')::int4 \
                    - coalesce(pg_catalog.current_setting('reserved_connections', true), '0')::int4, \
                    pg_catalog.current_setting('password_encryption'), \
                    pg_catalog.current_setting('max_prepared_transactions')::int4",
            &[],
        )
        .await?;
    let change = SettingChange::read(session).await?;
    let connections = usize::try_from(row.get::<_, i32>(0)).unwrap_or_default();
    Ok(vec![
        connections_of(connections, nodes, &change),
        password_encryption(row.get(1), &change),
        prepared_transactions(row.get(2), &change),
    ])
}

fn connections_of(connections: usize, nodes: u32, change: &SettingChange) -> Finding {
    let nodes = usize::try_from(nodes).unwrap_or(usize::MAX).max(1);
    let share = shared_connections(connections, 0) / nodes;
    let least = Limits::for_node(0).least();
    let enough = nodes.saturating_mul(20) + 20;
    Finding::require(
        share >= least,
        &format!("each of {nodes} node(s) may hold {share} connections"),
        &format!(
            "each of {nodes} node(s) may hold {share} connections only, {least} are the least \
             (restart PostgreSQL after this)"
        ),
        change.command("max_connections", &enough.to_string(), Effect::Restart),
    )
}

fn password_encryption(encryption: &str, change: &SettingChange) -> Finding {
    Finding::recommend(
        encryption == "scram-sha-256",
        "password_encryption is scram-sha-256",
        "password_encryption is not scram-sha-256: passwords that others set are stored weakly",
        change.command("password_encryption", "scram-sha-256", Effect::Reload),
    )
}

fn prepared_transactions(most: i32, change: &SettingChange) -> Finding {
    Finding::recommend(
        most == 0,
        "max_prepared_transactions is 0",
        "max_prepared_transactions is not 0: a user could leave a transaction with its locks \
         behind (restart PostgreSQL after this)",
        change.command("max_prepared_transactions", "0", Effect::Restart),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(cluster: &str, command_line: &[&str]) -> SettingChange {
        let command_line = command_line.iter().map(|it| (*it).to_owned()).collect();
        SettingChange::of(cluster.to_owned(), command_line)
    }

    #[test]
    fn a_setting_is_changed_where_the_change_has_an_effect() {
        let plain = change("", &["config_file"]);
        assert_eq!(
            plain.command("wal_level", "logical", Effect::Restart),
            "ALTER SYSTEM SET wal_level = 'logical';"
        );
        assert_eq!(
            plain.command("password_encryption", "md5", Effect::Reload),
            "ALTER SYSTEM SET password_encryption = 'md5'; SELECT pg_reload_conf();"
        );
        let container = change("shop", &["wal_level", "cluster_name"]);
        assert_eq!(
            container.command("max_connections", "80", Effect::Restart),
            "ALTER SYSTEM SET max_connections = 80;"
        );
        let command = container.command("wal_level", "logical", Effect::Restart);
        assert!(command.starts_with("-- wal_level = logical, on the"));
    }

    #[test]
    fn patroni_changes_all_settings() {
        let patroni = change("the shop's", &PATRONI);
        assert_eq!(
            patroni.command("max_connections", "80", Effect::Restart),
            "patronictl edit-config 'the shop'\\''s' --pg max_connections=80\n\
             patronictl restart 'the shop'\\''s'"
        );
        let patroni = change("shop", &PATRONI);
        assert_eq!(
            patroni.command("password_encryption", "scram-sha-256", Effect::Reload),
            "patronictl edit-config shop --pg password_encryption=scram-sha-256"
        );
    }
}
