//! Parses connection URIs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tidegate_sql::DatabaseName;
use tokio::sync::Semaphore;

use super::{Config, SESSIONS, Secret, Target, TlsMode};

/// Why a connection URI is invalid. The texts never quote the URI, because it contains a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The URI does not start with `postgres://` or `postgresql://`.
    #[error("the URL must start with postgresql:// or postgres://")]
    NotPostgres,
    /// A percent sign is not followed by two hexadecimal digits, or the bytes are not UTF-8.
    #[error("the URL's {0} is not percent-encoded UTF-8")]
    BadEncoding(&'static str),
    /// The user or password contains a character that must be percent-encoded, because it would end
    /// this part of the URI.
    #[error(
        "the URL's user or password has a character that must be encoded: / as %2F, ? as %3F, @ as \
         %40"
    )]
    NotEncoded,
    /// The port is not a number from 1 to 65535.
    #[error("the URL's port is not a number from 1 to 65535")]
    BadPort,
    /// One of several hosts is empty.
    #[error("the URL's list of hosts has an empty entry: HOST:PORT,HOST:PORT was expected")]
    EmptyHost,
    /// The numbers of hosts and ports differ, and there is more than one port.
    #[error("the URL has {hosts} hosts and {ports} ports; give one port for all, or one for each")]
    PortCount {
        /// How many hosts the URL names.
        hosts: usize,
        /// How many ports the URL names.
        ports: usize,
    },
    /// `target_session_attrs` requests a kind of server with which the service cannot work.
    #[error(
        "target_session_attrs is `{0}`; it may be any, read-write or primary, because the service \
         writes"
    )]
    UnsupportedSessionAttributes(String),
    /// The URI names no user.
    #[error("the URL has no user: postgresql://USER:PASSWORD@HOST/DATABASE")]
    NoUser,
    /// The `sslmode` is unknown.
    #[error("sslmode is `{0}`; it may be disable, prefer, require, verify-ca or verify-full")]
    UnknownTlsMode(String),
    /// A parameter is unknown.
    #[error("the URL's parameter `{0}` is not supported")]
    UnknownParameter(String),
}

impl std::str::FromStr for TlsMode {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        Ok(match text {
            "disable" => Self::Disable,
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            other => return Err(ConfigError::UnknownTlsMode(other.to_owned())),
        })
    }
}

/// The decoded parts of a URI.
#[derive(Default)]
struct Pieces {
    user: Option<String>,
    password: String,
    hosts: Vec<String>,
    /// The ports, in the order of the hosts; `None` for the default. If there is only one port, it
    /// applies to all hosts.
    ports: Vec<Option<u16>>,
    requires_primary: Option<bool>,
    database: Option<String>,
    tls: Option<TlsMode>,
    root_certificate: Option<PathBuf>,
}

pub(super) fn parse(url: &str) -> Result<Config, ConfigError> {
    let rest = url
        .strip_prefix("postgresql://")
        .or_else(|| url.strip_prefix("postgres://"))
        .ok_or(ConfigError::NotPostgres)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    // Without this check, a part of a password could be parsed as a host and appear in an error
    // message.
    let (first_name, _) = query.split_once('=').unwrap_or((query, ""));
    if path.contains('@') || first_name.contains('@') {
        return Err(ConfigError::NotEncoded);
    }
    let mut pieces = Pieces::default();
    pieces.read_authority(authority)?;
    if !path.is_empty() {
        pieces.database = Some(decode(path, "database")?);
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        pieces.read_parameter(pair)?;
    }
    pieces.into_config()
}

impl Pieces {
    fn read_authority(&mut self, authority: &str) -> Result<(), ConfigError> {
        let (login, address) = authority.rsplit_once('@').unwrap_or(("", authority));
        if !login.is_empty() {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            self.user = Some(decode(user, "user")?).filter(|user| !user.is_empty());
            self.password = decode(password, "password")?;
        }
        for address in address.split(',') {
            let (host, port) = match address
                .strip_prefix('[')
                .and_then(|rest| rest.split_once(']'))
            {
                Some((host, port)) => (host, port.strip_prefix(':')),
                None => match address.rsplit_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (address, None),
                },
            };
            self.hosts.push(decode(host, "host")?);
            self.ports.push(read_port(port.unwrap_or_default())?);
        }
        Ok(())
    }

    fn read_parameter(&mut self, pair: &str) -> Result<(), ConfigError> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value, "parameter")?;
        match name {
            "host" => self.hosts = value.split(',').map(str::to_owned).collect(),
            "port" => self.ports = value.split(',').map(read_port).collect::<Result<_, _>>()?,
            "user" => self.user = Some(value),
            "password" => self.password = value,
            "dbname" => self.database = Some(value),
            "sslmode" => self.tls = Some(value.parse()?),
            "sslrootcert" => {
                self.root_certificate = (value != "system").then(|| PathBuf::from(value));
            }
            "target_session_attrs" => {
                self.requires_primary = Some(match value.as_str() {
                    "any" => false,
                    "read-write" | "primary" => true,
                    _ => return Err(ConfigError::UnsupportedSessionAttributes(value)),
                });
            }
            // The service sets these parameters itself. They are accepted and ignored so that a URL
            // made for another client works.
            "application_name" | "connect_timeout" | "client_encoding" => {}
            other => return Err(ConfigError::UnknownParameter(other.to_owned())),
        }
        Ok(())
    }

    fn targets(&self) -> Result<Vec<Target>, ConfigError> {
        let (hosts, ports) = (self.hosts.len(), self.ports.len());
        if ports > 1 && ports != hosts {
            return Err(ConfigError::PortCount { hosts, ports });
        }
        if hosts > 1 && self.hosts.iter().any(String::is_empty) {
            return Err(ConfigError::EmptyHost);
        }
        let port_of = |index| {
            let port = self.ports.get(index).or_else(|| self.ports.first());
            port.copied().flatten().unwrap_or(5432)
        };
        let targets = self.hosts.iter().enumerate();
        Ok(targets
            .map(|(index, host)| target(host, port_of(index)))
            .collect())
    }

    fn into_config(self) -> Result<Config, ConfigError> {
        let targets = self.targets()?;
        let default = if targets.iter().all(Target::is_local) {
            TlsMode::Prefer
        } else {
            TlsMode::VerifyFull
        };
        let admin_role = self.user.ok_or(ConfigError::NoUser)?;
        Ok(Config {
            tls: self.tls.unwrap_or(default),
            requires_primary: self.requires_primary.unwrap_or(targets.len() > 1),
            targets,
            preferred: Arc::default(),
            root_certificate: self.root_certificate,
            admin_database: DatabaseName::new(self.database.as_deref().unwrap_or("postgres")),
            admin_role,
            admin_password: Secret::new(self.password),
            control_database: DatabaseName::new("tidegate"),
            nodes: 1,
            sessions: Arc::new(Semaphore::new(SESSIONS)),
            streams: Arc::default(),
            connect_timeout: Duration::from_secs(10),
            statements_per_connection: 128,
            connector: Arc::default(),
        })
    }
}

fn target(host: &str, port: u16) -> Target {
    if host.starts_with('/') {
        let directory = PathBuf::from(host);
        return Target::Unix { directory, port };
    }
    let host = if host.is_empty() { "localhost" } else { host };
    Target::Tcp {
        host: host.to_owned(),
        port,
    }
}

/// Reads a port. Returns `None`, which means the default port, if the text is empty.
fn read_port(text: &str) -> Result<Option<u16>, ConfigError> {
    if text.is_empty() {
        return Ok(None);
    }
    let port = text.parse().ok().filter(|port| *port > 0);
    port.map(Some).ok_or(ConfigError::BadPort)
}

fn decode(text: &str, what: &'static str) -> Result<String, ConfigError> {
    let is_escape = |after: &str| {
        let digits = after.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) if text.split('%').skip(1).all(is_escape) => Ok(decoded.into_owned()),
        _ => Err(ConfigError::BadEncoding(what)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Target {
        let host = host.to_owned();
        Target::Tcp { host, port }
    }

    #[test]
    fn several_hosts_have_one_port_for_all_or_one_each() {
        let cases = [
            ("a@b,c:5433/x", [tcp("b", 5432), tcp("c", 5433)]),
            ("a@b:1,[::1]/x", [tcp("b", 1), tcp("::1", 5432)]),
            ("a@[fd00::2]:7,c:8", [tcp("fd00::2", 7), tcp("c", 8)]),
            ("a@b,c/x?port=6000", [tcp("b", 6000), tcp("c", 6000)]),
            ("a@/x?host=b,::1&port=1,2", [tcp("b", 1), tcp("::1", 2)]),
        ];
        for (rest, targets) in cases {
            let config = parse(&format!("postgresql://{rest}")).unwrap();
            assert_eq!(config.targets, targets, "{rest}");
            assert!(config.requires_primary, "{rest}");
        }
    }

    #[test]
    fn the_kind_of_server_can_be_chosen() {
        for (attributes, requires_primary) in
            [("any", false), ("read-write", true), ("primary", true)]
        {
            for hosts in ["b", "b,c"] {
                let url = format!("postgresql://a@{hosts}/x?target_session_attrs={attributes}");
                let config = parse(&url).unwrap();
                assert_eq!(config.requires_primary, requires_primary, "{url}");
            }
        }
    }

    #[test]
    fn a_url_names_a_tcp_address_and_a_login() {
        let config =
            parse("postgresql://adm%40in:p%3Aw@db.example:6432/main?sslmode=require").unwrap();
        assert_eq!(config.targets, [tcp("db.example", 6432)]);
        assert!(!config.requires_primary);
        assert_eq!(config.admin_role, "adm@in");
        assert_eq!(config.admin_password.reveal(), "p:w");
        assert_eq!(config.admin_database.as_str(), "main");
        assert_eq!(config.tls, TlsMode::Require);
    }

    #[test]
    fn a_character_of_the_password_that_would_end_the_login_is_refused() {
        for url in [
            "postgresql://a:p/w@b/x",
            "postgresql://a:p@s/w@b/x",
            "postgresql://a:1?w@b/x",
        ] {
            assert_eq!(parse(url).unwrap_err(), ConfigError::NotEncoded, "{url}");
        }
        let kept = parse("postgresql://a:p@w@b/x?password=p@q").unwrap();
        assert_eq!(kept.admin_password.reveal(), "p@q");
        assert_eq!(kept.targets, [tcp("b", 5432)]);
    }

    #[test]
    fn a_socket_directory_comes_as_parameter_or_as_encoded_host() {
        let expected = Target::Unix {
            directory: PathBuf::from("/run/pg"),
            port: 5433,
        };
        for url in [
            "postgres://a@/x?host=/run/pg&port=5433",
            "postgres://a:b@%2Frun%2Fpg:5433/postgres",
        ] {
            assert_eq!(
                parse(url).unwrap().targets,
                std::slice::from_ref(&expected),
                "{url}"
            );
        }
    }

    #[test]
    fn tls_is_verified_in_full_unless_the_server_is_on_this_machine() {
        assert_eq!(
            parse("postgresql://a@db.example").unwrap().tls,
            TlsMode::VerifyFull
        );
        for url in [
            "postgresql://a@127.0.0.1:1",
            "postgresql://a@[::1]:5432/x",
            "postgresql://a@/",
            "postgresql://a@localhost:1,127.0.0.1:2/x",
        ] {
            assert_eq!(parse(url).unwrap().tls, TlsMode::Prefer, "{url}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_url_is_named_without_quoting_it() {
        let wrong = |url| parse(url).unwrap_err();
        assert_eq!(wrong("mysql://a@b"), ConfigError::NotPostgres);
        assert_eq!(wrong("postgresql://b/x"), ConfigError::NoUser);
        assert_eq!(wrong("postgresql://:secret@b/x"), ConfigError::NoUser);
        assert_eq!(wrong("postgresql://a@b:70000/x"), ConfigError::BadPort);
        for url in ["postgresql://a@b,/x", "postgresql://a@/x?host=b,,c"] {
            assert_eq!(wrong(url), ConfigError::EmptyHost, "{url}");
        }
        assert_eq!(
            wrong("postgresql://a@b,c,d/x?port=1,2"),
            ConfigError::PortCount { hosts: 3, ports: 2 }
        );
        assert_eq!(
            wrong("postgresql://a@b,c/x?target_session_attrs=standby"),
            ConfigError::UnsupportedSessionAttributes("standby".to_owned())
        );
        assert_eq!(
            wrong("postgresql://a:%zz@b/x"),
            ConfigError::BadEncoding("password")
        );
        assert_eq!(
            wrong("postgresql://a@b/x?sslmode=maybe"),
            ConfigError::UnknownTlsMode("maybe".to_owned())
        );
        assert!(matches!(
            wrong("postgresql://a@b/x?foo=1"),
            ConfigError::UnknownParameter(_)
        ));
    }

    #[test]
    fn a_password_is_not_shown_by_debug() {
        let config = parse("postgresql://a:hunter2@b/x").unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
