//! The URL of the database to serve, and the URL of the administrator, which is derived from it.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tidegate_wire::Config;

use crate::cli_error::{CliError, Result};

/// The URL of the database to serve. It contains the login of the administrator.
pub(super) struct Address {
    /// The part of the URL before the path: scheme, login and host.
    authority: String,
    /// The query parameters of the URL, without `dbname`.
    parameters: Vec<String>,
    database: String,
    server: String,
    has_password: bool,
}

impl Address {
    /// Parses `postgresql://USER:PASSWORD@HOST/DATABASE?…` (PostgreSQL, "Connection URIs").
    ///
    /// # Errors
    ///
    /// A usage error. Its text never quotes the URL, because the URL may contain a password.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let wrong = |error| CliError::Usage(format!("the address cannot be used: {error}"));
        let config = Config::from_url(url).map_err(wrong)?;
        let database = config.admin_database.as_str();
        if database == "postgres" {
            return Err(CliError::Usage(
                "the address names no database to serve: postgresql://USER@HOST/DATABASE; the \
                 database postgres is the cluster's own"
                    .to_owned(),
            ));
        }
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let path = address.find("://").map_or(0, |at| at + 3);
        let end = address[path..].find('/').map(|at| path + at);
        let is_kept = |pair: &&str| !pair.is_empty() && !pair.starts_with("dbname=");
        Ok(Self {
            authority: address[..end.unwrap_or(address.len())].to_owned(),
            parameters: query
                .split('&')
                .filter(is_kept)
                .map(str::to_owned)
                .collect(),
            database: database.to_owned(),
            server: config.addresses(),
            has_password: !config.admin_password.reveal().is_empty(),
        })
    }

    /// The name of the database to serve.
    pub(super) fn database(&self) -> &str {
        &self.database
    }

    /// The database and its server in the form `DATABASE@SERVER`, without the login.
    pub(super) fn name(&self) -> String {
        format!("{}@{}", self.database, self.server)
    }

    /// The host and port, or the folder of the Unix socket and port.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn has_password(&self) -> bool {
        self.has_password
    }

    /// Adds a password to the URL.
    pub(super) fn set_password(&mut self, password: &str) {
        let encoded = utf8_percent_encode(password, NON_ALPHANUMERIC);
        self.parameters.push(format!("password={encoded}"));
        self.has_password = true;
    }

    /// The URL of the database `postgres` with the same login. The service takes advisory locks
    /// there. In the tenant's database, users could block the service by taking the same locks.
    pub(super) fn administrator(&self) -> String {
        let mut url = format!("{}/postgres", self.authority);
        for (index, parameter) in self.parameters.iter().enumerate() {
            url.push(if index == 0 { '?' } else { '&' });
            url.push_str(parameter);
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> (String, String) {
        let address = Address::parse(url).unwrap();
        (address.database().to_owned(), address.administrator())
    }

    #[test]
    fn the_database_is_replaced_and_the_rest_kept() {
        for (url, database, administrator) in [
            (
                "postgresql://me@db.example/shop",
                "shop",
                "postgresql://me@db.example/postgres",
            ),
            (
                "postgres://me:a%2Fb@[::1]:5433/my%20shop?sslmode=require",
                "my shop",
                "postgres://me:a%2Fb@[::1]:5433/postgres?sslmode=require",
            ),
            (
                "postgresql://me@/?host=/run/pg&dbname=shop",
                "shop",
                "postgresql://me@/postgres?host=/run/pg",
            ),
            (
                "postgresql://me@localhost?dbname=shop",
                "shop",
                "postgresql://me@localhost/postgres",
            ),
        ] {
            let expected = (database.to_owned(), administrator.to_owned());
            assert_eq!(read(url), expected, "{url}");
        }
    }

    #[test]
    fn a_password_is_added_encoded() {
        let mut address = Address::parse("postgresql://me@localhost/shop").unwrap();
        assert!(!address.has_password());
        address.set_password("a&b=c/d é");
        let config = Config::from_url(&address.administrator()).unwrap();
        assert_eq!(config.admin_password.reveal(), "a&b=c/d é");
        assert!(address.has_password());
    }

    #[test]
    fn an_address_without_a_database_is_refused_unquoted() {
        for url in [
            "postgresql://me:secret@localhost",
            "postgresql://me:secret@localhost/postgres",
            "mysql://me:secret@localhost/shop",
            "postgresql://:secret@localhost/shop",
        ] {
            let message = Address::parse(url).err().unwrap().to_string();
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
