//! The commands for users.

use clap::{Args, Subcommand};

use super::{Confirmation, PasswordSource};

/// `tidegate user …`.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Create a user and its PostgreSQL role
    Create {
        /// The tenant
        database: String,
        /// The user's name in the tenant
        name: String,
        /// Email address
        #[arg(long)]
        email: Option<String>,
        /// A group, or several with commas between them; may be repeated
        #[arg(long, value_delimiter = ',')]
        group: Vec<String>,
        /// The tenant's default user, as which anonymous callers run
        #[arg(long)]
        default: bool,
        /// A user that cannot sign in by password
        #[arg(long, conflicts_with = "password_file")]
        no_password: bool,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// List a tenant's users
    List {
        /// The tenant
        database: String,
    },
    /// Change a user; what is not named stays as it is
    Change(ChangedUser),
    /// Give a user a new password and end its sessions
    Password {
        /// The tenant
        database: String,
        /// The user
        name: String,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// Set the password of a user's role to the one that the service logs in with, for example
    /// after a restore without the roles' passwords, and reset settings that make PostgreSQL refuse
    /// the login
    Repair {
        /// The tenant
        #[arg(required_unless_present = "all")]
        database: Option<String>,
        /// The user
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        name: Option<String>,
        /// All users of the tenant, or of all tenants where none is named
        #[arg(long)]
        all: bool,
    },
    /// Drop a user with its role
    Drop {
        /// The tenant
        database: String,
        /// The user
        name: String,
        /// Give what the user owns in the database to the tenant's owner; refused for code that
        /// would run with the owner's rights
        #[arg(long)]
        reassign: bool,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// `tidegate user change`.
#[derive(Debug, Args)]
pub(crate) struct ChangedUser {
    /// The tenant
    pub(crate) database: String,
    /// The user
    pub(crate) name: String,
    /// Email address; empty for none
    #[arg(long)]
    pub(crate) email: Option<String>,
    /// Groups that replace the present ones, with commas between them; empty for none
    #[arg(long, value_delimiter = ',')]
    pub(crate) group: Option<Vec<String>>,
    /// Whether callers without a token run as this user
    #[arg(long, value_name = "BOOL")]
    pub(crate) default: Option<bool>,
}
