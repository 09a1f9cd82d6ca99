//! `/api/v4/issuers`: the external issuers whose tokens a tenant accepts, managed by its owner.

use http::{Method as Verb, Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_issuers::{
    ClaimPath, DirectoryError, IssuerChange, IssuerDirectory, IssuerRecord, IssuerSettings,
    SignatureAlgorithm,
};
use tidegate_oauth::Scope;

use super::clients::absent;
use super::rest::{self, ObjectMembers};
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::{Call, no_content};
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

const BASE: &str = "/api/v4/issuers";
const MEMBERS: &str = "name, issuer, jwks_url, audience, audience_claim, algorithms, user_claim, \
                       role_claim, default_role, create_members, claims, clock_skew";

/// An issuer in a response.
#[derive(Serialize)]
struct IssuerView<'a> {
    name: &'a str,
    #[serde(flatten)]
    settings: &'a IssuerSettings,
    /// `Some(false)` if the issuer creates no members; otherwise `None`. The field is needed
    /// because `settings` does not serialize this flag if it is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    create_members: Option<bool>,
    /// `Some(())`, which is serialized as null, if the issuer has no list of claims; otherwise
    /// `None`. The field is needed because `settings` does not serialize a missing list.
    #[serde(skip_serializing_if = "Option::is_none")]
    claims: Option<()>,
    /// The reason why this node could not load the keys of the issuer; null if no failure is known.
    problem: Option<String>,
}

/// Manages the external issuers of the caller's tenant.
struct IssuerAdmin {
    /// The directory of issuers. Its audit events name the caller as the actor.
    directory: IssuerDirectory,
    database: String,
}

impl IssuerAdmin {
    async fn of<B>(call: &mut Call<'_, B>) -> Result<Self, ApiError> {
        let user = rest::user(call, Scope::Admin).await?;
        let directory = call.app.external_issuers().ok_or_else(absent)?;
        rest::require_owner(&user.claims)?;
        let address = call.client_address();
        Ok(Self {
            directory: directory.acting_as(user.claims.acting(), Some(address)),
            database: user.claims.database.clone(),
        })
    }

    async fn find(&self, names: &[&str]) -> Result<Vec<IssuerRecord>, ApiError> {
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let record = self.directory.find(&self.database, name).await;
            found.push(record.map_err(failure)?);
        }
        Ok(found)
    }

    /// Adds the issuers, and returns their names. If an issuer cannot be added, drops the issuers
    /// that were already added, and returns the error. If `listed` is true, the request is an
    /// array, and the error names the index of the issuer. If dropping an issuer fails too, returns
    /// the error of the drop without an index, and some of the added issuers remain.
    async fn create(&self, new: Vec<NewIssuer>, listed: bool) -> Result<Vec<String>, ApiError> {
        let mut made: Vec<String> = Vec::with_capacity(new.len());
        for (index, NewIssuer { name, settings }) in new.into_iter().enumerate() {
            if let Err(error) = self.directory.create(&self.database, &name, settings).await {
                for name in &made {
                    let dropped = self.directory.drop_issuer(&self.database, name).await;
                    dropped.map_err(failure)?;
                }
                return Err(rest::at_index(failure(error), listed, index));
            }
            made.push(name);
        }
        Ok(made)
    }
}

struct NewIssuer {
    name: String,
    settings: IssuerSettings,
}

/// Handles `GET`, which lists the issuers, and `POST`, which adds new issuers.
pub(crate) async fn collection<B: IncomingBody>(
    mut call: Call<'_, B>,
) -> Result<Response<Body>, ApiError> {
    let admin = IssuerAdmin::of(&mut call).await?;
    if call.head.method != Verb::POST {
        let issuers = admin.directory.list(&admin.database).await;
        let issuers = issuers.map_err(failure)?;
        return rest::shown(&shown(call.app, &issuers));
    }
    let body = rest::objects(call.app, call.head, call.body, call.subject).await?;
    let read = |(index, object)| {
        let new = new_issuer(object);
        new.map_err(|failure| rest::at_index(failure, body.listed, index))
    };
    let new = body.objects.into_iter().enumerate().map(read);
    let new = new.collect::<Result<Vec<_>, _>>()?;
    let made = admin.create(new, body.listed).await?;
    reload(call.app).await?;
    let names: Vec<&str> = made.iter().map(String::as_str).collect();
    rest::linked(StatusCode::CREATED, BASE, &names)
}

/// Handles `GET`, `PATCH` and `DELETE`, which show, change and drop the issuers in the path.
pub(crate) async fn members<B: IncomingBody>(
    mut call: Call<'_, B>,
    names: &str,
) -> Result<Response<Body>, ApiError> {
    let admin = IssuerAdmin::of(&mut call).await?;
    let names = rest::names(call.app, names)?;
    match call.head.method {
        Verb::PATCH => {
            admin.find(&names).await?;
            let members = rest::object_of(call.app, call.head, call.body, call.subject).await?;
            let change = patch(members)?;
            for name in &names {
                let changed = admin
                    .directory
                    .change(&admin.database, name, change.clone());
                changed.await.map_err(failure)?;
            }
            reload(call.app).await?;
            rest::linked(StatusCode::SEE_OTHER, BASE, &names)
        }
        Verb::DELETE => {
            for name in &names {
                let required = admin.directory.require(&admin.database, name).await;
                required.map_err(failure)?;
            }
            for name in &names {
                let dropped = admin.directory.drop_issuer(&admin.database, name).await;
                dropped.map_err(failure)?;
            }
            reload(call.app).await?;
            Ok(no_content())
        }
        _ => match &*admin.find(&names).await? {
            [issuer] => rest::shown(&view(call.app, issuer)),
            several => rest::shown(&shown(call.app, several)),
        },
    }
}

/// Makes a change of issuers take effect on this node immediately. The other nodes notice the
/// change within seconds.
async fn reload(app: &App) -> Result<(), ApiError> {
    let reloaded = app.reload_issuers().await;
    reloaded.map_err(|error| failure(DirectoryError::Store(error)))
}

fn shown<'a>(app: &App, records: &'a [IssuerRecord]) -> Vec<IssuerView<'a>> {
    records.iter().map(|record| view(app, record)).collect()
}

fn view<'a>(app: &App, record: &'a IssuerRecord) -> IssuerView<'a> {
    IssuerView {
        name: &record.name,
        settings: &record.settings,
        create_members: (!record.settings.create_members).then_some(false),
        claims: record.settings.claims.is_none().then_some(()),
        problem: app.issuer_problem(record),
    }
}

fn failure(error: DirectoryError) -> ApiError {
    match error {
        DirectoryError::Name | DirectoryError::Settings(_) | DirectoryError::DefaultRole => {
            ApiError::input(error.to_string())
        }
        DirectoryError::TooMany => ApiError::conflict(error.to_string()),
        DirectoryError::Taken(_) | DirectoryError::Overlap(_) => {
            ApiError::already_exists(error.to_string())
        }
        DirectoryError::NotFound(_) => ApiError::not_found(error.to_string()),
        DirectoryError::Store(error) => {
            ApiError::from_accounts(tidegate_identity::Error::Store(error))
        }
    }
}

fn new_issuer(object: Map<String, Value>) -> Result<NewIssuer, ApiError> {
    let mut members = ObjectMembers::new(object);
    let name = members.required("name")?;
    let issuer = members.required("issuer")?;
    let missing = || ApiError::input("`audience`: missing");
    let audience = members.text_or_texts("audience")?.ok_or_else(missing)?;
    let mut settings = IssuerSettings::new(issuer, audience);
    optional_members(&mut members)?.apply(&mut settings);
    members.finish(MEMBERS)?;
    Ok(NewIssuer { name, settings })
}

fn patch(mut members: ObjectMembers) -> Result<IssuerChange, ApiError> {
    if members.has("name") {
        return Err(ApiError::input("`name`: an issuer keeps its name"));
    }
    let (issuer, audience) = (members.text("issuer")?, members.text_or_texts("audience")?);
    let change = IssuerChange {
        issuer,
        audience,
        ..optional_members(&mut members)?
    };
    members.finish(MEMBERS.trim_start_matches("name, "))?;
    Ok(change)
}

/// Parses the members that are optional in a new issuer.
fn optional_members(members: &mut ObjectMembers) -> Result<IssuerChange, ApiError> {
    let mut optional_path = |member: &str| -> Result<Option<Option<ClaimPath>>, ApiError> {
        let text = members.optional_text(member)?;
        let path = |text: Option<String>| text.map(|text| path(&text, member)).transpose();
        text.map(path).transpose()
    };
    let (user_claim, role_claim) = (optional_path("user_claim")?, optional_path("role_claim")?);
    let audience_claim = members.text("audience_claim")?;
    let claims = members.optional_texts("claims")?;
    Ok(IssuerChange {
        jwks_url: members.optional_text("jwks_url")?,
        audience_claim: audience_claim
            .map(|text| path(&text, "audience_claim"))
            .transpose()?,
        algorithms: algorithms(members)?,
        user_claim,
        role_claim,
        default_role: members.optional_text("default_role")?,
        create_members: members.flag("create_members")?,
        claims: claims
            .map(|texts| texts.map(|texts| paths(&texts, "claims")).transpose())
            .transpose()?,
        clock_skew: members.seconds("clock_skew")?,
        ..IssuerChange::default()
    })
}

fn path(text: &str, member: &str) -> Result<ClaimPath, ApiError> {
    let path: Result<ClaimPath, _> = text.parse();
    path.map_err(|error| ApiError::input(format!("`{member}`: {error}")))
}

fn paths(texts: &[String], member: &str) -> Result<Vec<ClaimPath>, ApiError> {
    rest::each(member, texts, |text| text.parse::<ClaimPath>())
}

fn algorithms(members: &mut ObjectMembers) -> Result<Option<Vec<SignatureAlgorithm>>, ApiError> {
    let Some(names) = members.texts("algorithms")? else {
        return Ok(None);
    };
    let expected = "expected one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA";
    let parse = |name: &String| SignatureAlgorithm::from_name(name).ok_or(expected);
    rest::each("algorithms", &names, parse).map(Some)
}
