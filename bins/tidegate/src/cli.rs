//! The command line as types.

mod client;
mod issuer;
mod token;
mod user;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::settings::{DatabaseUrl, SettingFlags};
pub(crate) use client::{ChangedClient, ClientCommand, NewClient};
pub(crate) use issuer::{IssuerCommand, NewIssuer};
pub(crate) use token::{NewToken, TokenCommand};
pub(crate) use user::{ChangedUser, ConvertedUsers, CredentialChoice, UserCommand, UserKindChoice};

/// Put it in front of PostgreSQL and every table, query and change is an API.
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version,
    max_term_width = 100,
    after_help = "`tidegate help settings` describes the settings, which every command takes as \
                  flags, as variables TIDEGATE_… and from the file."
)]
pub(crate) struct Cli {
    /// File with settings (TOML); also `TIDEGATE_CONFIG`
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The last line of `--help` of commands that start the service.
const SETTINGS: &str = "It takes settings, such as --listen ADDRESS and --data-dir FOLDER; \
                        `tidegate help settings` describes them.";

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a database that exists: check it, adopt it, create a client, serve
    #[command(after_help = SETTINGS)]
    Up(Up),
    /// Serve the API
    #[command(after_help = SETTINGS)]
    Serve,
    /// Serve a demonstration with a PostgreSQL of its own
    #[command(after_help = SETTINGS)]
    Demo(Demo),
    /// Print the effective settings and where each comes from
    Settings,
    /// Check every right and setting that the service needs in PostgreSQL
    Doctor,
    /// Databases that the service stands in front of
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Users of a tenant
    #[command(subcommand)]
    User(UserCommand),
    /// Applications that may ask for tokens
    #[command(subcommand)]
    Client(ClientCommand),
    /// External issuers whose tokens a tenant accepts
    #[command(subcommand)]
    Issuer(IssuerCommand),
    /// Personal access tokens, for programs that cannot sign in
    #[command(subcommand)]
    Token(TokenCommand),
    /// The master key and the keys that sign tokens
    #[command(subcommand)]
    Key(KeyCommand),
    /// What change events keep in PostgreSQL: slots, publications, replica identities
    #[command(subcommand)]
    Feed(FeedCommand),
    /// The nodes that run, and what each of them reads
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Print a script that completes commands and flags in a shell
    #[command(after_help = "Install it with one of:\n  \
        tidegate completions bash > /etc/bash_completion.d/tidegate\n  \
        tidegate completions zsh > \"${fpath[1]}/_tidegate\"\n  \
        tidegate completions fish > ~/.config/fish/completions/tidegate.fish")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page (roff)
    #[command(hide = true)]
    Man,
}

/// `tidegate up`.
#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Address of the database, with a role that can create roles:
    /// `postgresql://USER@HOST/DATABASE`; without it, the demo is served. The password may also be in PGPASSWORD, or is asked for
    #[arg(value_name = "URL")]
    pub(crate) url: Option<DatabaseUrl>,
    /// Run the SQL that is shown without asking
    #[arg(long, requires = "url")]
    pub(crate) yes: bool,
    /// Role of the tenant's owner, if another role has the database's name
    #[arg(long = "as", value_name = "ROLE", requires = "url")]
    pub(crate) role: Option<String>,
    /// Read the owner's password from the first line of a file; `-` is the standard input. If not
    /// given, a password is generated
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) password_file: Option<PathBuf>,
    /// Do not download PostgreSQL for the demo if none is installed
    #[arg(long, conflicts_with = "url")]
    pub(crate) no_fetch: bool,
}

/// `tidegate demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Delete the demonstration's data and start again
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Do not download PostgreSQL if none is installed
    #[arg(long)]
    pub(crate) no_fetch: bool,
}

/// `tidegate tenant …`.
#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Make a database and its owner
    Create {
        /// The tenant's name, which is the database's and its owner's
        name: String,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// Put the service in front of a database that exists; changes no table
    Adopt {
        /// The database
        name: String,
        /// Role of the tenant's owner, when the database's name is taken by another role
        #[arg(long = "as", value_name = "ROLE")]
        role: Option<String>,
        /// Print the SQL and run nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// List the tenants
    List,
    /// Show a tenant and its settings
    Show {
        /// The tenant
        name: String,
    },
    /// Change settings of a tenant
    #[command(
        after_help = "Settings:\n  anonymous_sql=off|read|on  SQL of callers without a token: \
                            none, one read-only statement at a time, or whatever the default user's \
                            rights allow\n  impersonation=true|false   Whether the owner may act \
                            as the tenant's users"
    )]
    Set {
        /// The tenant
        name: String,
        /// A setting, such as `anonymous_sql=read`
        #[arg(required = true, value_name = "SETTING=VALUE")]
        settings: Vec<String>,
    },
    /// Take the service away from a database: its users, clients and what was granted
    Drop {
        /// The tenant
        name: String,
        /// Drop the database with all its data too
        #[arg(long)]
        with_data: bool,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// `tidegate key …`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a master key in a new file that only its owner can read
    Init {
        /// The file; the setting `master_key_file` when left out
        file: Option<PathBuf>,
    },
    /// Let the next signing key sign from now on, and publish another next one
    Rotate {
        /// The key in use got out: the next one signs at once, and what the old one signed is
        /// refused
        #[arg(long)]
        compromised: bool,
        /// Instead of the signing key, replace the keys that seal the claims of members in the
        /// databases of tenants
        #[arg(long, conflicts_with = "compromised")]
        claims: bool,
        /// The only tenant whose key of claims is replaced
        #[arg(long, value_name = "NAME", requires = "claims")]
        database: Option<String>,
    },
    /// List the signing keys
    List,
}

/// `tidegate feed …`.
#[derive(Debug, Subcommand)]
pub(crate) enum FeedCommand {
    /// Show the slots, publications, replica identities and settings of the log, or the outboxes
    Status {
        /// One database; all tenants when left out
        database: Option<String>,
    },
    /// Put replica identities back, drop the publications and the slot, or the outbox with its triggers; no data of yours is touched
    Drop {
        /// The database
        database: String,
        /// End streams that are open; a server that runs opens a new one at once
        #[arg(long)]
        end_streams: bool,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// `tidegate cluster …`.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show the nodes with their connections, which node reads the changes of which database, and
    /// the lag of the replicas
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The source of a password. A password is never an argument of the command line.
#[derive(Debug, Args)]
pub(crate) struct PasswordSource {
    /// Read the password from the first line of a file; `-` is the standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
}

/// How a command that drops something is confirmed.
#[derive(Debug, Args)]
pub(crate) struct Confirmation {
    /// Do not ask for the name again
    #[arg(long)]
    pub(crate) yes: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Identifiers are random base64url, so one of 64 starts with `-`.
    #[test]
    fn an_identifier_may_start_with_a_hyphen() {
        const ID: &str = "-EGNmVURKSlzWHVP0jO--Q";
        let parse = |arguments: &[&str]| {
            let arguments = ["tidegate"].iter().chain(arguments);
            Cli::try_parse_from(arguments).unwrap().command
        };
        for arguments in [
            &["token", "revoke", "shop", ID] as &[_],
            &["client", "drop", ID, "--yes"],
            &["client", "change", ID, "--name", "App"],
        ] {
            let parsed = format!("{:?}", parse(arguments));
            assert!(parsed.contains(&format!("id: \"{ID}\"")), "{parsed}");
        }
        assert!(
            format!("{:?}", parse(&["client", "drop", ID, "--yes"])).contains("yes: true"),
            "a flag after the identifier stays a flag"
        );
    }
}
