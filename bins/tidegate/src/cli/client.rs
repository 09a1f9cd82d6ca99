//! The commands for clients.

use clap::{Args, Subcommand};

use super::{Confirmation, UserKindChoice};

/// `tidegate client …`.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Register an application; prints the secret of a confidential one, once
    Create(NewClient),
    /// Change a client; what is not named stays as it is
    Change(ChangedClient),
    /// List a tenant's clients
    List {
        /// The tenant
        database: String,
    },
    /// Drop a client and end its sessions
    Drop {
        /// The client
        #[arg(allow_hyphen_values = true)]
        id: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// `tidegate client create`.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct NewClient {
    /// The tenant
    pub(crate) database: String,
    /// The name that people see
    pub(crate) name: String,
    /// The `client_id`; made when left out
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Redirect URI (RFC 6749, section 3.1.2); may be repeated
    #[arg(long, required = true, value_name = "URI")]
    pub(crate) redirect_uri: Vec<String>,
    /// The application cannot keep a secret
    #[arg(long)]
    pub(crate) public: bool,
    /// Skip the consent page
    #[arg(long)]
    pub(crate) no_confirm: bool,
    /// The application's own page
    #[arg(long)]
    pub(crate) homepage: Option<String>,
    /// Description, shown on the consent page
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// Grants that it may use; all when left out
    #[arg(long, value_delimiter = ',', value_name = "GRANT")]
    pub(crate) grants: Vec<String>,
    /// User of the tenant that it acts as by its own credentials (grant `client_credentials`)
    #[arg(long, value_name = "USER")]
    pub(crate) service_user: Option<String>,
    /// Signing in requires a second factor
    #[arg(long)]
    pub(crate) two_factor: bool,
    /// People may sign up
    #[arg(long)]
    pub(crate) allow_signup: bool,
    /// People may sign up with an identity provider
    #[arg(long)]
    pub(crate) social_signup: bool,
    /// Kind of the users that sign up through the client [default: role]
    #[arg(long, requires_if("member", "signup_group"))]
    pub(crate) signup_kind: Option<UserKindChoice>,
    /// Group of the users that sign up through the client
    #[arg(long, value_name = "GROUP")]
    pub(crate) signup_group: Option<String>,
}

/// `tidegate client change`.
#[derive(Debug, Args)]
pub(crate) struct ChangedClient {
    /// The client
    #[arg(allow_hyphen_values = true)]
    pub(crate) id: String,
    /// The name that people see
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Redirect URI that replaces the present ones; may be repeated
    #[arg(long, value_name = "URI")]
    pub(crate) redirect_uri: Vec<String>,
    /// Redirect URI to add; the present redirect URIs stay; may be repeated
    #[arg(long, value_name = "URI", conflicts_with = "redirect_uri")]
    pub(crate) add_redirect_uri: Vec<String>,
    /// The application's own page; empty for none
    #[arg(long)]
    pub(crate) homepage: Option<String>,
    /// New description, shown on the consent page; an empty text removes it
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// Whether the application cannot keep a secret
    #[arg(long, value_name = "BOOL")]
    pub(crate) public: Option<bool>,
    /// Whether people are asked for consent
    #[arg(long, value_name = "BOOL")]
    pub(crate) confirm: Option<bool>,
    /// Whether signing in requires a second factor
    #[arg(long, value_name = "BOOL")]
    pub(crate) two_factor: Option<bool>,
    /// Whether people may sign up
    #[arg(long, value_name = "BOOL")]
    pub(crate) allow_signup: Option<bool>,
    /// Whether people may sign up with an identity provider
    #[arg(long, value_name = "BOOL")]
    pub(crate) social_signup: Option<bool>,
    /// Kind of the users that sign up through the client; existing users keep theirs
    #[arg(long)]
    pub(crate) signup_kind: Option<UserKindChoice>,
    /// Group of the users that sign up through the client, empty for none; existing users keep theirs
    #[arg(long, value_name = "GROUP")]
    pub(crate) signup_group: Option<String>,
    /// Grants that the client may use, or `all`
    #[arg(long, value_delimiter = ',', value_name = "GRANT")]
    pub(crate) grants: Vec<String>,
    /// Service user: with the grant `client_credentials`, the client acts as this user; an empty
    /// text removes it
    #[arg(long, value_name = "USER")]
    pub(crate) service_user: Option<String>,
    /// Make a new secret and print it; the previous one works for another 24 hours
    #[arg(long)]
    pub(crate) rotate_secret: bool,
}
