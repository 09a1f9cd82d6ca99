//! `/signup/`: self-registration through a client that allows it.

use http::Response;
use tidegate_identity::{Error as IdentityError, NewUser, Secret, TenantName, UserName};
use tidegate_oauth::{Client, Error};

use super::confirm_sign_up::send_confirmation;
use super::context::{PageContext, form};
use super::form_error::{FormError, request_error};
use crate::template::{self, SignUp};
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

/// Handles `GET` and `POST /signup`.
pub async fn sign_up<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let mut context = PageContext::receive(call).await?;
    let issuer = context.app.issuer();
    let client = issuer.client_and_redirect_uri(&context.query).await;
    let (client, redirect_uri) = client.map_err(request_error)?;
    let parent = context.parameter("parentdb");
    if parent.is_some_and(|parent| !client.belongs_to(parent)) {
        let wrong = IdentityError::Malformed {
            part: "parentdb",
            expected: "the database of the client",
        };
        return Err(request_error(wrong.into()));
    }
    if !client.allow_signup || !context.app.allows_sign_up() {
        return Err(ApiError::sign_up_closed());
    }
    // A browser that came from the sign-in page returns to that page. There the user is already
    // signed in, so a code is issued without another page.
    let from_sign_in = context.parameter("response_type").is_some();
    let sign_in = from_sign_in.then(|| context.path(&format!("/auth?{}", context.raw_query())));
    let refused = if context.step() == Some("sign_up") {
        let next = sign_in.as_deref().unwrap_or(&redirect_uri);
        match create(&mut context, &client, (next, &redirect_uri)).await? {
            Ok(response) => return Ok(response),
            Err(error) => Some(form_error(error)?),
        }
    } else {
        None
    };
    let (here, token) = (context.request_path(), context.token());
    let card = template::sign_up(&SignUp {
        form: form(&here, &token, refused.as_ref()),
        client: &client.name,
        username: context.field("username"),
        email: context.field("email"),
        sign_in: sign_in.as_deref(),
    });
    let more = (refused.as_ref(), Some(&*redirect_uri));
    Ok(context.show("Create an account", &card, more))
}

/// Creates the user. If email is configured, only sends a confirmation message, and the link in the
/// message creates the user. After the user is created, the browser goes to `next`, and finally to
/// `returns_to`. Returns `Ok(Err(_))` for an error that the form shows.
async fn create(
    context: &mut PageContext<'_>,
    client: &Client,
    (next, returns_to): (&str, &str),
) -> Result<Result<Response<Body>, Error>, ApiError> {
    let user = match read(context, client) {
        Ok(user) => user,
        Err(error) => return Ok(Err(error)),
    };
    if context.app.mailer().is_some() {
        return send_confirmation(context, client, user, (next, returns_to)).await;
    }
    let accounts = context
        .app
        .accounts()
        .ok_or_else(ApiError::sign_up_closed)?;
    let issuer = context.app.issuer();
    match issuer
        .sign_up(accounts, client, user, &context.request)
        .await
    {
        Ok(cookie) => {
            context.switch_cookie(cookie).await?;
            Ok(Ok(context.redirect(next)))
        }
        Err(error) => Ok(Err(error)),
    }
}

fn read(context: &PageContext<'_>, client: &Client) -> Result<NewUser, Error> {
    let username = context
        .field("username")
        .ok_or(Error::MissingParameter("username"))?;
    let email = context
        .field("email")
        .ok_or(Error::MissingParameter("email"))?;
    let password = context
        .field("password")
        .ok_or(Error::MissingParameter("password"))?;
    let database = TenantName::adopted(client.database.as_deref().unwrap_or_default())?;
    let mut user = NewUser::new(database, UserName::parse(username)?);
    user.email = Some(email.to_owned());
    user.password = Some(Secret::new(password));
    Ok(user)
}

fn form_error(error: Error) -> Result<FormError, ApiError> {
    let field = match &error {
        Error::MissingParameter(field) => return Ok(FormError::missing(field)),
        Error::Identity(IdentityError::InvalidField {
            field: field @ ("email" | "password"),
            ..
        }) => field,
        _ => "username",
    };
    FormError::of(field, error)
}
