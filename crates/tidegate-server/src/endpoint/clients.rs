//! `/api/v4/clients`: the OAuth clients of a tenant, managed by its owner.

use http::{Method as Verb, Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_identity::{Secret, TenantName};
use tidegate_oauth::{
    Client, ClientAuthentication, ClientChange, ClientDirectory, CreatedClient, GrantKind,
    GrantSet, NewClient, Scope,
};

use super::rest::{self, Links, ObjectMembers};
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::{Call, no_content};
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

const BASE: &str = "/api/v4/clients";
const MEMBERS: &str = "id, name, redirect_uri, homepage, description, public, confirm, two_factor, \
                       allow_signup, social_signup, signup_kind, signup_group, grants, service_user";

/// A client in a response.
#[derive(Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the flags of the wire"
)]
struct ClientView<'a> {
    id: &'a str,
    name: &'a str,
    redirect_uri: &'a [String],
    homepage: Option<&'a str>,
    description: Option<&'a str>,
    public: bool,
    confirm: bool,
    two_factor: bool,
    allow_signup: bool,
    social_signup: bool,
    signup_kind: &'static str,
    signup_group: Option<&'a str>,
    grants: Vec<&'static str>,
    service_user: Option<&'a str>,
}

/// The response for a client that was created or got a new secret. Only this response has the
/// secret.
#[derive(Serialize)]
struct Created<'a> {
    _links: Links,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
}

/// Manages the OAuth clients of the caller's tenant.
struct ClientAdmin {
    /// The directory of clients. Its audit events name the caller as the actor.
    directory: ClientDirectory,
    database: String,
}

impl ClientAdmin {
    async fn of<B>(call: &mut Call<'_, B>) -> Result<Self, ApiError> {
        let user = rest::user(call, Scope::Admin).await?;
        call.app.accounts().ok_or_else(absent)?;
        rest::require_owner(&user.claims)?;
        let address = call.client_address();
        let directory = call.app.issuer().clients();
        Ok(Self {
            directory: directory.acting_as(user.claims.acting(), Some(address)),
            database: user.claims.database.clone(),
        })
    }

    async fn find(&self, ids: &[&str]) -> Result<Vec<Client>, ApiError> {
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let client = self.directory.client(&self.database, id).await;
            found.push(client.map_err(|error| rest::naming(error, "client", id))?);
        }
        Ok(found)
    }
}

/// Handles `GET`, which lists the clients, and `POST`, which registers new clients.
pub(crate) async fn collection<B: IncomingBody>(
    mut call: Call<'_, B>,
) -> Result<Response<Body>, ApiError> {
    let admin = ClientAdmin::of(&mut call).await?;
    if call.head.method != Verb::POST {
        let clients = admin.directory.clients(&admin.database).await;
        let clients = clients.map_err(ApiError::from_accounts)?;
        return rest::shown(&clients.iter().map(shown).collect::<Vec<_>>());
    }
    rest::require_encrypted(call.app, call.peer, call.head)?;
    let body = rest::objects(call.app, call.head, call.body, call.subject).await?;
    let listed = body.listed;
    let place = |failure, index| rest::at_index(failure, listed, index);
    let mut new = Vec::with_capacity(body.objects.len());
    for (index, object) in body.objects.into_iter().enumerate() {
        new.push(read(object, &admin.database).map_err(|failure| place(failure, index))?);
    }
    let mut made: Vec<CreatedClient> = Vec::with_capacity(new.len());
    for (index, client) in new.into_iter().enumerate() {
        match admin.directory.create_client(client).await {
            Ok(client) => made.push(client),
            Err(error) => {
                for CreatedClient { client, .. } in &made {
                    let dropped = admin
                        .directory
                        .drop_client(&admin.database, &client.id)
                        .await;
                    dropped.map_err(ApiError::from_accounts)?;
                }
                return Err(place(ApiError::from_accounts(error), index));
            }
        }
    }
    with_secrets(StatusCode::CREATED, &made, body.listed)
}

/// Handles `GET`, `PATCH` and `DELETE`, which show, change and drop the clients in the path.
pub(crate) async fn members<B: IncomingBody>(
    mut call: Call<'_, B>,
    ids: &str,
) -> Result<Response<Body>, ApiError> {
    let admin = ClientAdmin::of(&mut call).await?;
    let ids = rest::names(call.app, ids)?;
    let found = admin.find(&ids).await?;
    match call.head.method {
        Verb::PATCH => {
            rest::require_encrypted(call.app, call.peer, call.head)?;
            let members = rest::object_of(call.app, call.head, call.body, call.subject).await?;
            let changed = change(&admin, &ids, patch(members)?).await;
            refuse_ended(call.app).await?;
            changed
        }
        Verb::DELETE => {
            for id in ids {
                let dropped = admin.directory.drop_client(&admin.database, id).await;
                dropped.map_err(ApiError::from_accounts)?;
            }
            refuse_ended(call.app).await?;
            Ok(no_content())
        }
        _ => match &*found {
            [client] => rest::shown(&shown(client)),
            several => rest::shown(&several.iter().map(shown).collect::<Vec<_>>()),
        },
    }
}

async fn change(
    admin: &ClientAdmin,
    ids: &[&str],
    change: ClientChange,
) -> Result<Response<Body>, ApiError> {
    let mut changed = Vec::with_capacity(ids.len());
    for id in ids {
        let done = admin
            .directory
            .change_client(&admin.database, id, change.clone());
        changed.push(
            done.await
                .map_err(|error| rest::naming_one(error, "client", (id, ids)))?,
        );
    }
    if changed.iter().any(|client| client.secret.is_some()) {
        return with_secrets(StatusCode::OK, &changed, ids.len() > 1);
    }
    rest::linked(StatusCode::SEE_OTHER, BASE, ids)
}

/// Makes this node refuse the tokens of ended sessions from now on. The other nodes refuse them
/// within seconds.
pub(super) async fn refuse_ended(app: &App) -> Result<(), ApiError> {
    let refreshed = app.issuer().refresh_denylist().await;
    refreshed.map_err(ApiError::from_accounts)
}

pub(super) fn absent() -> ApiError {
    ApiError::not_found("there is no such path")
}

fn shown(client: &Client) -> ClientView<'_> {
    let grants = match &client.grants {
        GrantSet::All => &GrantKind::ALL[..],
        GrantSet::Only(kinds) => kinds,
    };
    ClientView {
        id: &client.id,
        name: &client.name,
        redirect_uri: &client.redirect_uris,
        homepage: client.homepage.as_deref(),
        description: client.description.as_deref(),
        public: client.authentication == ClientAuthentication::Public,
        confirm: client.confirm,
        two_factor: client.two_factor,
        allow_signup: client.allow_signup,
        social_signup: client.social_signup,
        signup_kind: client.signup.kind.name(),
        signup_group: client.signup.group.as_deref(),
        grants: grants.iter().map(|kind| kind.name()).collect(),
        service_user: client.service_user.as_deref(),
    }
}

fn with_secrets(
    status: StatusCode,
    clients: &[CreatedClient],
    listed: bool,
) -> Result<Response<Body>, ApiError> {
    let ids: Vec<_> = clients.iter().map(|made| made.client.id.as_str()).collect();
    let location = format!("{BASE}/{}", ids.join(","));
    match clients {
        [one] if !listed => rest::located(status, &location, &created(one)),
        several => {
            let bodies: Vec<_> = several.iter().map(created).collect();
            rest::located(status, &location, &bodies)
        }
    }
}

fn created(made: &CreatedClient) -> Created<'_> {
    Created {
        _links: Links::to(BASE, &made.client.id),
        id: &made.client.id,
        secret: made.secret.as_ref().map(Secret::expose),
    }
}

fn read(object: Map<String, Value>, database: &str) -> Result<NewClient, ApiError> {
    let mut members = ObjectMembers::new(object);
    let database = TenantName::adopted(database).map_err(ApiError::internal)?;
    let name = members.required("name")?;
    let uris = members.texts("redirect_uri")?;
    let uris = uris.ok_or_else(|| ApiError::input("`redirect_uri`: missing"))?;
    let mut client = NewClient::new(database, &name, uris);
    client.id = members.optional_text("id")?.flatten();
    client.homepage = members.optional_text("homepage")?.flatten();
    client.description = members.optional_text("description")?.flatten();
    let mut flag = |name, field: &mut bool| {
        members
            .flag(name)
            .map(|value| *field = value.unwrap_or(*field))
    };
    flag("public", &mut client.public)?;
    flag("confirm", &mut client.confirm)?;
    flag("two_factor", &mut client.two_factor)?;
    flag("allow_signup", &mut client.allow_signup)?;
    flag("social_signup", &mut client.social_signup)?;
    if let Some(kind) = members.user_kind("signup_kind")? {
        client.signup.kind = kind;
    }
    client.signup.group = members.optional_text("signup_group")?.flatten();
    if let Some(grants) = grants(&mut members)? {
        client.grants = grants;
    }
    client.service_user = members.optional_text("service_user")?.flatten();
    members.finish(MEMBERS)?;
    Ok(client)
}

fn patch(mut members: ObjectMembers) -> Result<ClientChange, ApiError> {
    if members.has("id") {
        return Err(ApiError::input("`id`: a client keeps its id"));
    }
    let change = ClientChange {
        name: members.text("name")?,
        redirect_uris: members.texts("redirect_uri")?,
        homepage: members.optional_text("homepage")?,
        description: members.optional_text("description")?,
        public: members.flag("public")?,
        confirm: members.flag("confirm")?,
        two_factor: members.flag("two_factor")?,
        allow_signup: members.flag("allow_signup")?,
        social_signup: members.flag("social_signup")?,
        signup_kind: members.user_kind("signup_kind")?,
        signup_group: members.optional_text("signup_group")?,
        grants: grants(&mut members)?,
        service_user: members.optional_text("service_user")?,
        rotate_secret: members.flag("rotate_secret")?.unwrap_or(false),
    };
    let known = MEMBERS.trim_start_matches("id, ");
    members.finish(&format!("{known}, rotate_secret"))?;
    Ok(change)
}

/// The grants of a client in a request. A list that contains every grant also allows the grants
/// that later versions add. `None` if the member is absent.
fn grants(members: &mut ObjectMembers) -> Result<Option<GrantSet>, ApiError> {
    let Some(names) = members.texts("grants")? else {
        return Ok(None);
    };
    let known = GrantKind::ALL.map(GrantKind::name).join(", ");
    let expected = format!("expected one of {known}");
    let kind = |name: &String| GrantKind::from_name(name).ok_or(&expected);
    let kinds = rest::each("grants", &names, kind)?;
    let all = GrantKind::ALL.iter().all(|kind| kinds.contains(kind));
    Ok(Some(if all {
        GrantSet::All
    } else {
        GrantSet::Only(kinds)
    }))
}
