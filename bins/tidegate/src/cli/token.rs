//! The commands for personal access tokens.

use clap::{Args, Subcommand};

/// `tidegate token …`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a personal access token of a user; prints it, once
    Create(NewToken),
    /// List the personal access tokens of a tenant's users
    List {
        /// The tenant
        database: String,
    },
    /// Revoke a personal access token
    Revoke {
        /// The tenant
        database: String,
        /// The id that `list` shows
        #[arg(allow_hyphen_values = true)]
        id: String,
    },
}

/// `tidegate token create`.
#[derive(Debug, Args)]
pub(crate) struct NewToken {
    /// The tenant
    pub(crate) database: String,
    /// The user
    pub(crate) user: String,
    /// Name of the token, for the list
    pub(crate) name: String,
    /// Days until the token expires, at most 366
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u16).range(1..=366))]
    pub(crate) days: u16,
    /// Scopes with commas between them: read, write, methods, sql, admin; by default, all rights of
    /// the user
    #[arg(long, value_delimiter = ',', value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
}
