//! Signing in with an account elsewhere (OpenID Connect Core 1.0, section 3.1). The trip to the
//! provider and back is kept nowhere: it is sealed in `state` and bound to the browser's cookie.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::{Browser, Issuer};
use crate::{
    Accounts, AuditKind, Client, Error, ExternalIdentity, IdentityProviders, Letter, NewUser,
    Parameters, Result, Secret, SecretHash, TenantName, Trip, User, UserName, Visit, random,
};

const TRIP: &str = "trip to an identity provider";
/// How many names are tried for a new user.
const NAMES: u32 = 20;
/// How much of a name elsewhere is taken over, so that a number fits behind it.
const NAME_CHARACTERS: usize = 24;

#[derive(Serialize, Deserialize)]
struct SealedTrip {
    provider: String,
    nonce: String,
    verifier: String,
    purpose: Purpose,
    cookie: String,
    until: i64,
}

/// Why somebody goes to a provider.
#[derive(Serialize, Deserialize)]
pub(super) enum Purpose {
    /// To sign in for a client; the browser goes on at the path `next`.
    SignIn { client: String, next: String },
    /// To link the account there to whoever is signed in.
    Link,
}

/// A browser that came back from a provider.
#[derive(Debug)]
pub enum Arrival {
    /// Somebody is signed in.
    SignedIn {
        /// The browser's new cookie.
        cookie: Secret,
        /// The path where the browser goes on.
        next: String,
    },
    /// The account there is linked to whoever was signed in; the letter that tells it to the
    /// user, if there is an address for it.
    Linked(Option<Letter>),
}

/// What a browser brought back from a provider.
#[derive(Clone, Copy, Debug)]
pub struct Return<'a> {
    /// The parameters of the address.
    pub answer: &'a Parameters,
    /// The browser's cookie.
    pub cookie: &'a Secret,
    /// Who is signed in.
    pub browser: Option<&'a Browser>,
}

impl Issuer {
    /// Where a browser goes to sign in with a provider, for a client; it comes back to
    /// `redirect_uri` and in the end to the path `next`.
    ///
    /// [`Error::NotFound`] for a provider that there is not, [`Error::Outbound`] when it cannot be
    /// reached.
    pub async fn begin_social(
        &self,
        providers: &dyn IdentityProviders,
        there: (&str, &str),
        (client, next): (&Client, &str),
        cookie: &Secret,
    ) -> Result<String> {
        let purpose = Purpose::SignIn {
            client: client.id.clone(),
            next: next.to_owned(),
        };
        self.begin_trip(providers, there, purpose, cookie).await
    }

    /// Where a browser goes for this purpose.
    pub(super) async fn begin_trip(
        &self,
        providers: &dyn IdentityProviders,
        (provider, redirect_uri): (&str, &str),
        purpose: Purpose,
        cookie: &Secret,
    ) -> Result<String> {
        let words = [self.word()?, self.word()?];
        let [nonce, verifier] = words;
        let now = self.ports.clock.now();
        let sealed = SealedTrip {
            provider: provider.to_owned(),
            nonce: nonce.clone(),
            verifier: verifier.clone(),
            purpose,
            cookie: SecretHash::of(cookie).to_base64url(),
            until: now.plus(self.settings.lifetimes.social_trip).millis(),
        };
        let trip = Trip {
            redirect_uri: redirect_uri.to_owned(),
            state: self.seal_link(TRIP, &sealed)?,
            nonce,
            verifier: Secret::new(verifier),
            now,
        };
        let begun = providers.begin(provider, &trip);
        begun.await?.ok_or(Error::NotFound("identity provider"))
    }

    /// Takes back a browser that comes from a provider: signs in the user who is linked to that
    /// account, or makes one where the client allows it, or links the account to whoever is
    /// signed in.
    ///
    /// [`Error::DeadLink`] for a trip of another browser or one that took too long,
    /// [`Error::AccessDenied`] when the person or the provider said no, [`Error::SignUpClosed`],
    /// [`Error::InvalidMember`] without a verified address of e-mail, [`Error::Taken`] when the
    /// account is linked to another user, [`Error::Outbound`].
    pub async fn complete_social(
        &self,
        (providers, accounts): (&dyn IdentityProviders, &Accounts),
        (provider, redirect_uri): (&str, &str),
        back: &Return<'_>,
        visit: &Visit,
    ) -> Result<Arrival> {
        let state = back.answer.text("state")?.unwrap_or_default();
        let sealed: SealedTrip = self.open_link(TRIP, state)?;
        self.still(sealed.until)?;
        let cookie = SecretHash::of(back.cookie).to_base64url();
        if sealed.cookie != cookie || sealed.provider != provider {
            return Err(Error::DeadLink);
        }
        let code = back.answer.text("code")?.ok_or(Error::AccessDenied)?;
        let trip = Trip {
            redirect_uri: redirect_uri.to_owned(),
            state: state.to_owned(),
            nonce: sealed.nonce,
            verifier: Secret::new(sealed.verifier),
            now: self.ports.clock.now(),
        };
        let identity = providers.complete(provider, code, &trip).await?;
        let identity = (provider, &identity);
        match sealed.purpose {
            Purpose::Link => {
                let browser = back.browser.filter(|browser| !browser.lacks_second_factor);
                let browser = browser.ok_or(Error::DeadLink)?;
                let letter = self.link(browser, identity, visit).await?;
                Ok(Arrival::Linked(letter))
            }
            Purpose::SignIn { client, next } => {
                let client = self.ports.store.client(&client).await?;
                let client = client.ok_or(Error::UnknownClient)?;
                let user = self.social_user(accounts, &client, identity, visit);
                let user = user.await?;
                let event = self.event(AuditKind::SignedIn, Some(&user.key.database));
                let event = event.of_user(&user.key.name).of_client(&client.id);
                let event = event.about(&identity.1.issuer);
                self.ports.audit(event.from(visit.address)).await;
                let cookie = self.open_browser(&user, visit, false).await?;
                Ok(Arrival::SignedIn { cookie, next })
            }
        }
    }

    /// The user with this account elsewhere. An address of e-mail alone makes nobody one of ours:
    /// who has an account here may never have shown that the address is theirs.
    async fn social_user(
        &self,
        accounts: &Accounts,
        client: &Client,
        (provider, identity): (&str, &ExternalIdentity),
        visit: &Visit,
    ) -> Result<User> {
        let store = &self.ports.store;
        let (issuer, subject) = (identity.issuer.as_str(), identity.subject.as_str());
        let known = || store.user_of_identity(&client.database, issuer, subject);
        if let Some(user) = known().await? {
            return Ok(user);
        }
        if !client.allow_signup || !client.social_signup {
            return Err(Error::SignUpClosed);
        }
        let Some(email) = &identity.verified_email else {
            return Err(Error::InvalidMember {
                member: "email",
                expected: "an account whose e-mail address the provider has verified",
            });
        };
        self.count_sign_up(visit).await?;
        let wanted = identity.name.as_deref().unwrap_or(email);
        let user = self.social_account(accounts, client, (wanted, email), visit);
        let user = user.await?;
        if self.add_link(&user, (provider, identity), visit).await? {
            return Ok(user);
        }
        // The same person was faster in another window: that account is the person's.
        let accounts = accounts.acting_as(&user.key.name, visit.address);
        accounts.drop(&user.key, false).await?;
        known().await?.ok_or(Error::DeadLink)
    }

    async fn social_account(
        &self,
        accounts: &Accounts,
        client: &Client,
        (wanted, email): (&str, &str),
        visit: &Visit,
    ) -> Result<User> {
        let allowed = |c: &char| c.is_ascii_alphanumeric() || "_.-".contains(*c);
        let first = wanted.split('@').next().unwrap_or_default();
        let stem: String = first
            .chars()
            .filter(allowed)
            .take(NAME_CHARACTERS)
            .collect();
        let stem = if stem.is_empty() {
            "user".to_owned()
        } else {
            stem
        };
        for number in 1..=NAMES {
            let name = match number {
                1 => stem.clone(),
                _ => format!("{stem}-{number}"),
            };
            let database = TenantName::adopted(&client.database)?;
            let mut new = NewUser::new(database, UserName::parse(&name)?);
            new.email = Some(email.to_owned());
            new.signs_up = true;
            let accounts = accounts.acting_as(&name, visit.address);
            match accounts.create(new).await {
                Err(Error::Taken(_)) => {}
                made => return made,
            }
        }
        Err(Error::Taken("user"))
    }

    /// 256 random bits as 43 characters, which a code verifier and a nonce may be.
    fn word(&self) -> Result<String> {
        let bytes: [u8; 32] = random::bytes(&*self.ports.random)?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }
}
