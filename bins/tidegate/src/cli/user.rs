//! The commands for users.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tidegate_identity::{CredentialKind, UserKind};

use super::{Confirmation, PasswordSource};

/// `tidegate user …`.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Make a user with a PostgreSQL role of its own, or a member, which has none
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
        /// A member: it has no role, and its requests run as the role of its one group
        #[arg(long, requires = "group", conflicts_with = "default")]
        member: bool,
        /// What `tidegate.user_id()` returns for a member; a UUID is made if absent
        #[arg(long, requires = "member")]
        id: Option<String>,
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
    /// Convert users to members, which have no role, or members to users with a role; ends their sessions
    Convert(ConvertedUsers),
    /// Give a user a new password and end its sessions
    Password {
        /// The tenant
        database: String,
        /// The user
        name: String,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// Show how a user signs in, or remove its passkeys, linked accounts or second factor, as after a
    /// theft or a loss
    Credentials {
        /// The tenant
        database: String,
        /// The user
        name: String,
        /// Remove all of these kinds, with commas between them, and end the user's sessions
        #[arg(long, value_name = "KIND", value_delimiter = ',')]
        remove: Vec<CredentialChoice>,
    },
    /// Give a user's role the password that the service logs in with, as after a restore without
    /// the roles' passwords, and reset settings of the role with which PostgreSQL lets it not in
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
    /// E-mail address; empty for none
    #[arg(long)]
    pub(crate) email: Option<String>,
    /// The groups, instead of those so far, with commas between them; empty for none
    #[arg(long, value_delimiter = ',')]
    pub(crate) group: Option<Vec<String>>,
    /// Whether callers without a token run as this user
    #[arg(long, value_name = "BOOL")]
    pub(crate) default: Option<bool>,
    /// Whether the user is disabled; a disabled user can neither sign in nor send requests, and
    /// disabling it ends its sessions
    #[arg(long, value_name = "BOOL")]
    pub(crate) disabled: Option<bool>,
}

/// `tidegate user convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertedUsers {
    /// The tenant
    pub(crate) database: String,
    /// The users
    #[arg(required_unless_present = "names_file")]
    pub(crate) names: Vec<String>,
    /// File with further users, one on each line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) names_file: Option<PathBuf>,
    /// Kind to convert the users to
    #[arg(long)]
    pub(crate) to: UserKindChoice,
    /// Groups of the users after the conversion, separated by commas; a member must have exactly one
    #[arg(long, value_delimiter = ',')]
    pub(crate) group: Option<Vec<String>>,
    /// Transfer the objects of dropped roles in the database to the tenant's owner; the transfer is
    /// refused for code that would then run with the owner's rights
    #[arg(long)]
    pub(crate) reassign: bool,
}

/// A kind of credentials on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CredentialChoice {
    /// All passkeys
    Passkeys,
    /// All linked accounts of identity providers
    LinkedAccounts,
    /// The second factor with its recovery codes
    SecondFactor,
}

impl From<CredentialChoice> for CredentialKind {
    fn from(choice: CredentialChoice) -> Self {
        match choice {
            CredentialChoice::Passkeys => Self::Passkeys,
            CredentialChoice::LinkedAccounts => Self::LinkedAccounts,
            CredentialChoice::SecondFactor => Self::SecondFactor,
        }
    }
}

/// The kind of a user on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UserKindChoice {
    /// A user with a PostgreSQL role
    Role,
    /// A user without one, in a group
    Member,
}

impl From<UserKindChoice> for UserKind {
    fn from(kind: UserKindChoice) -> Self {
        match kind {
            UserKindChoice::Role => Self::Role,
            UserKindChoice::Member => Self::Member,
        }
    }
}
