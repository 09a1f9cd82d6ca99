//! The commands for external issuers.

use clap::{Args, Subcommand};
use tidegate_issuers::ClaimPath;

use super::Confirmation;

/// `tidegate issuer …`.
#[derive(Debug, Subcommand)]
pub(crate) enum IssuerCommand {
    /// Accept the tokens of an issuer such as Keycloak, Auth0 or Entra ID
    Add(Box<NewIssuer>),
    /// List the issuers whose tokens a tenant accepts
    List {
        /// The tenant
        database: String,
    },
    /// Refuse the tokens of an issuer from now on
    Drop {
        /// The tenant
        database: String,
        /// The issuer's name
        name: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// `tidegate issuer add`.
#[derive(Debug, Args)]
pub(crate) struct NewIssuer {
    /// The tenant
    pub(crate) database: String,
    /// Name of the issuer in the tenant
    pub(crate) name: String,
    /// URL of the issuer, exactly as in the claim `iss`
    pub(crate) issuer: String,
    /// Accepted audience; may be repeated
    #[arg(long, required = true, value_name = "TEXT")]
    pub(crate) audience: Vec<String>,
    /// Claim with the audience; by default, `aud`
    #[arg(long, value_name = "CLAIM")]
    pub(crate) audience_claim: Option<ClaimPath>,
    /// URL of the issuer's keys; by default, the URL in the discovery document
    #[arg(long, value_name = "URL")]
    pub(crate) jwks_url: Option<String>,
    /// Signature algorithms; by default, RS256, ES256 and `EdDSA`
    #[arg(long, value_delimiter = ',', value_name = "ALGORITHM")]
    pub(crate) algorithms: Vec<String>,
    /// Claim that names a user of the tenant, such as `preferred_username`
    #[arg(long, value_name = "CLAIM")]
    pub(crate) user_claim: Option<ClaimPath>,
    /// Claim that names groups or users of the tenant, such as `realm_access.roles`
    #[arg(long, value_name = "CLAIM")]
    pub(crate) role_claim: Option<ClaimPath>,
    /// Group or user for tokens that name none; a missing group is created
    #[arg(long, value_name = "NAME")]
    pub(crate) default_role: Option<String>,
    /// Create a member for each person in a group at the first request of that person
    #[arg(long)]
    pub(crate) create_members: bool,
    /// Claims that policies can read, with commas between them; by default, all
    #[arg(long, value_delimiter = ',', value_name = "CLAIM")]
    pub(crate) claims: Option<Vec<ClaimPath>>,
    /// Clock skew that is tolerated, in seconds; by default, 60
    #[arg(long, value_name = "SECONDS")]
    pub(crate) clock_skew: Option<u64>,
}
