//! The fields of a new client, and of a change to a client.

use tidegate_identity::{Secret, SignUpUser, TenantName, UserKind};

use crate::{Client, GrantSet};

/// A client to register. [`NewClient::new`] has the defaults of the API.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the flags of the wire"
)]
pub struct NewClient {
    /// The tenant that the client belongs to.
    pub database: TenantName,
    /// The client's id: 1 to 64 characters of `[A-Za-z0-9_.-]`; generated if absent.
    pub id: Option<String>,
    /// The name shown to users.
    pub name: String,
    /// The redirect URIs; at least one.
    pub redirect_uris: Vec<String>,
    /// The application's home page.
    pub homepage: Option<String>,
    /// A description of the application.
    pub description: Option<String>,
    /// Whether the client is public.
    pub public: bool,
    /// The secret of a confidential client; 256 bits are generated if absent.
    pub secret: Option<Secret>,
    /// Whether users are asked for consent.
    pub confirm: bool,
    /// Whether signing in requires a second factor.
    pub two_factor: bool,
    /// Whether users may sign up.
    pub allow_signup: bool,
    /// Whether users may sign up with an identity provider.
    pub social_signup: bool,
    /// The kind and the group of the users who sign up.
    pub signup: SignUpUser,
    /// The grants that the client may use.
    pub grants: GrantSet,
    /// With the grant `client_credentials`, the client acts as this user.
    pub service_user: Option<String>,
}

impl NewClient {
    /// A confidential client with a generated id and secret, all grants, consent required, no
    /// sign-up.
    pub fn new(database: TenantName, name: &str, redirect_uris: Vec<String>) -> Self {
        Self {
            database,
            id: None,
            name: name.to_owned(),
            redirect_uris,
            homepage: None,
            description: None,
            public: false,
            secret: None,
            confirm: true,
            two_factor: false,
            allow_signup: false,
            social_signup: false,
            signup: SignUpUser::default(),
            grants: GrantSet::All,
            service_user: None,
        }
    }
}

/// Changes to a client; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default)]
pub struct ClientChange {
    /// The new name shown to users.
    pub name: Option<String>,
    /// The new redirect URIs.
    pub redirect_uris: Option<Vec<String>>,
    /// The new home page; `Some(None)` removes it.
    pub homepage: Option<Option<String>>,
    /// The new description; `Some(None)` removes it.
    pub description: Option<Option<String>>,
    /// Whether the client is to be public (`true`) or confidential (`false`).
    pub public: Option<bool>,
    /// Whether users are to be asked for consent.
    pub confirm: Option<bool>,
    /// Whether signing in is to require a second factor.
    pub two_factor: Option<bool>,
    /// Whether users may sign up from now on.
    pub allow_signup: Option<bool>,
    /// Whether users may sign up with an identity provider from now on.
    pub social_signup: Option<bool>,
    /// The kind of users who sign up from now on.
    pub signup_kind: Option<UserKind>,
    /// The group of users who sign up from now on; `Some(None)` for no group.
    pub signup_group: Option<Option<String>>,
    /// The grants that the client may use from now on.
    pub grants: Option<GrantSet>,
    /// With the grant `client_credentials`, the client acts as this user from now on; `Some(None)`
    /// for no user.
    pub service_user: Option<Option<String>>,
    /// Whether to rotate the secret.
    pub rotate_secret: bool,
}

impl ClientChange {
    /// Overwrites the fields of `client` for which the change has a value. Ignores `public` and
    /// `rotate_secret`.
    pub(super) fn apply(self, client: &mut Client) {
        fn set<T>(field: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *field = value;
            }
        }
        set(&mut client.name, self.name);
        set(&mut client.redirect_uris, self.redirect_uris);
        set(&mut client.homepage, self.homepage);
        set(&mut client.description, self.description);
        set(&mut client.confirm, self.confirm);
        set(&mut client.two_factor, self.two_factor);
        set(&mut client.allow_signup, self.allow_signup);
        set(&mut client.social_signup, self.social_signup);
        set(&mut client.signup.kind, self.signup_kind);
        set(&mut client.signup.group, self.signup_group);
        set(&mut client.grants, self.grants);
        set(&mut client.service_user, self.service_user);
    }
}
