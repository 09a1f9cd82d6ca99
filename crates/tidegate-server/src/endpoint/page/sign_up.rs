//! `/signup/`: a person makes an account through a client that allows it.

use http::Response;
use tidegate_oauth::{Client, Error, NewUser, Secret, TenantName, UserName};

use super::authorize::shown;
use super::confirm::invite;
use super::visitor::{Refused, Visitor, form};
use crate::body::Body;
use crate::endpoint::Call;
use crate::error::Failure;
use crate::page::{self, SignUp};
use crate::stack::BodyError;

pub(crate) async fn sign_up<B>(call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let mut visitor = Visitor::receive(call).await?;
    let issuer = visitor.app.issuer();
    let client = issuer.returning_client(&visitor.query).await;
    let (client, redirect_uri) = client.map_err(shown)?;
    let parent = visitor.parameter("parentdb");
    if parent.is_some_and(|parent| parent != client.database) {
        return Err(shown(Error::ForeignDatabase));
    }
    if !client.allow_signup || !visitor.app.takes_sign_ups() {
        return Err(Failure::sign_up_closed());
    }
    // Who came from the sign-in page goes back there; a code follows at once.
    let from_sign_in = visitor.parameter("response_type").is_some();
    let sign_in = from_sign_in.then(|| visitor.path(&format!("/auth?{}", visitor.raw_query())));
    let refused = if visitor.step() == Some("sign_up") {
        let next = sign_in.as_deref().unwrap_or(&redirect_uri);
        match create(&mut visitor, &client, next).await? {
            Ok(answer) => return Ok(answer),
            Err(error) => Some(complaint(error)?),
        }
    } else {
        None
    };
    let (here, token) = (visitor.here(), visitor.token());
    let card = page::sign_up(&SignUp {
        form: form(&here, &token, refused.as_ref()),
        client: &client.name,
        username: visitor.field("username"),
        email: visitor.field("email"),
        sign_in: sign_in.as_deref(),
    });
    let more = (refused.as_ref(), Some(&*redirect_uri));
    Ok(visitor.show("Create an account", &card, more))
}

/// Makes the account at once, or where letters are sent after its confirmation.
async fn create(
    visitor: &mut Visitor<'_>,
    client: &Client,
    next: &str,
) -> Result<Result<Response<Body>, Error>, Failure> {
    let user = match read(visitor, client) {
        Ok(user) => user,
        Err(error) => return Ok(Err(error)),
    };
    if visitor.app.mail().is_some() {
        return invite(visitor, client, (user, next)).await;
    }
    let accounts = visitor.app.accounts().ok_or_else(Failure::sign_up_closed)?;
    let issuer = visitor.app.issuer();
    match issuer.sign_up(accounts, client, user, &visitor.visit).await {
        Ok(cookie) => {
            visitor.take(cookie).await?;
            Ok(Ok(visitor.go(next)))
        }
        Err(error) => Ok(Err(error)),
    }
}

fn read(visitor: &Visitor<'_>, client: &Client) -> Result<NewUser, Error> {
    let username = visitor
        .field("username")
        .ok_or(Error::MissingParameter("username"))?;
    let email = visitor
        .field("email")
        .ok_or(Error::MissingParameter("email"))?;
    let password = visitor
        .field("password")
        .ok_or(Error::MissingParameter("password"))?;
    let database = TenantName::adopted(&client.database)?;
    let mut user = NewUser::new(database, UserName::parse(username)?);
    user.email = Some(email.to_owned());
    user.password = Some(Secret::new(password));
    Ok(user)
}

fn complaint(error: Error) -> Result<Refused, Failure> {
    let field = match &error {
        Error::MissingParameter(field) => return Ok(Refused::missing(field)),
        Error::InvalidMember { member, .. } if matches!(*member, "email" | "password") => member,
        _ => "username",
    };
    Refused::of(field, error)
}
