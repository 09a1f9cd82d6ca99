//! Writes `postgresql.conf` and `pg_hba.conf`.

use std::fmt::Write;
use std::path::Path;

use crate::error::{Error, Result};

/// The content of `pg_hba.conf`: every role may connect with a password, but only over the Unix
/// socket and from 127.0.0.1 (PostgreSQL, "The `pg_hba.conf` File").
pub(crate) const HBA: &str = "\
local all         all              scram-sha-256
local replication all              scram-sha-256
host  all         all 127.0.0.1/32 scram-sha-256
host  replication all 127.0.0.1/32 scram-sha-256
";

/// The settings that only this crate may set, because the crate depends on their values.
const RESERVED: [&str; 11] = [
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "include",
    "listen_addresses",
    "password_encryption",
    "port",
    "unix_socket_directories",
    "unix_socket_permissions",
];

/// The settings of all clusters. Starts, stops and crashes are logged. Errors of statements are not
/// logged, because they contain data.
const BASE_SETTINGS: [(&str, &str); 9] = [
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_permissions", "0700"),
    ("wal_level", "logical"),
    ("password_encryption", "scram-sha-256"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("log_destination", "stderr"),
    ("logging_collector", "off"),
    ("log_min_messages", "log"),
];

/// Additional settings of a temporary cluster, whose data need not survive a crash of the machine.
const TEMPORARY: [(&str, &str); 3] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
];

/// The values on which the text of `postgresql.conf` depends.
#[derive(Debug)]
pub(crate) struct Configuration<'a> {
    pub(crate) data: &'a Path,
    pub(crate) hba: &'a Path,
    pub(crate) socket_dir: &'a Path,
    pub(crate) port: u16,
    pub(crate) temporary: bool,
    pub(crate) extra: &'a [(String, String)],
}

impl Configuration<'_> {
    /// The text of `postgresql.conf`. It includes the file that `initdb` wrote for the machine,
    /// followed by this crate's settings, and then by the caller's settings.
    pub(crate) fn to_text(&self) -> Result<String> {
        let mut text = format!(
            "include {}\n",
            quoted(path(&self.data.join("postgresql.conf"))?)
        );
        let (port, socket_dirs) = (self.port.to_string(), listed(path(self.socket_dir)?));
        let paths = [
            ("port", port.as_str()),
            ("hba_file", path(self.hba)?),
            ("unix_socket_directories", socket_dirs.as_str()),
        ];
        let fast = if self.temporary { &TEMPORARY[..] } else { &[] };
        let extra = self
            .extra
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let own = paths.iter().chain(&BASE_SETTINGS).chain(fast).copied();
        for (name, value) in own.chain(extra) {
            writeln!(text, "{name} = {}", quoted(value)).expect("writing to a String succeeds");
        }
        Ok(text)
    }
}

/// Checks that the names of the caller's settings are valid and not reserved.
pub(crate) fn check_extra(extra: &[(String, String)]) -> Result<()> {
    for (name, _) in extra {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_name) {
            return Err(Error::SettingName { name: name.clone() });
        }
        let lower = name.to_ascii_lowercase();
        if RESERVED.contains(&lower.as_str()) || lower.starts_with("include_") {
            return Err(Error::ReservedSetting { name: name.clone() });
        }
    }
    Ok(())
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::NotUtf8 {
        path: path.to_owned(),
    })
}

/// A quoted value for the configuration file (PostgreSQL, "Parameter Names and Values").
fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('\'', "''");
    format!("'{}'", escaped.replace('\n', "\\n").replace('\r', "\\r"))
}

/// A folder as an element of a list. It is quoted, because otherwise a comma in the path would end
/// the element.
fn listed(folder: &str) -> String {
    format!("\"{}\"", folder.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(extra: &[(String, String)], temporary: bool) -> String {
        let (data, hba) = (Path::new("/c/data"), Path::new("/c/pg_hba.conf"));
        let socket_dir = Path::new("/c,d/so'cket");
        Configuration {
            data,
            hba,
            socket_dir,
            port: 15_432,
            temporary,
            extra,
        }
        .to_text()
        .unwrap()
    }

    #[test]
    fn values_cannot_leave_their_quotes() {
        let text = text(&[("a.b".into(), "it's\\\nport = 1".into())], false);
        assert!(text.ends_with("a.b = 'it''s\\\\\\nport = 1'\n"), "{text}");
        assert!(
            text.contains("unix_socket_directories = '\"/c,d/so''cket\"'\n"),
            "{text}"
        );
    }

    #[test]
    fn only_a_temporary_cluster_gives_up_durability() {
        assert!(text(&[], true).contains("fsync = 'off'"));
        assert!(!text(&[], false).contains("fsync"));
    }

    #[test]
    fn every_login_needs_a_password() {
        assert_eq!(HBA.lines().count(), 4);
        assert!(HBA.lines().all(|line| line.ends_with(" scram-sha-256")));
    }

    #[test]
    fn settings_of_our_own_and_broken_names_are_refused() {
        let check = |name: &str| check_extra(&[(name.to_owned(), "1".to_owned())]);
        assert!(check("max_connections").is_ok() && check("auto_explain.log").is_ok());
        for name in ["port", "Listen_Addresses", "include_dir"] {
            assert!(matches!(check(name), Err(Error::ReservedSetting { name: n }) if n == name));
        }
        for name in ["", "a b", "a\nport", "1a", "a=b"] {
            assert!(
                matches!(check(name), Err(Error::SettingName { .. })),
                "{name:?}"
            );
        }
    }
}
