//! Letters with links: to confirm a sign-up, and to choose a new password. What a link stands for
//! is sealed inside it by the master key; kept is only that the link of a sign-up was used.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Issuer;
use super::browser::stamp;
use crate::{
    Accounts, AttemptLimit, AttemptScope, Client, Directory, Error, Letter, NewUser, Result,
    Secret, TenantName, Timestamp, User, UserKey, UserName, Visit, throttle,
};

const SIGN_UP: &str = "sign-up link";
const RESET: &str = "password reset link";
/// Longer tokens are none of ours.
const LONGEST: usize = 4096;
/// How many people may share an address of e-mail and are written to.
const NAMESAKES: usize = 5;

#[derive(Serialize, Deserialize)]
struct SignUpLink {
    database: String,
    client: String,
    /// When the client was registered: another one of this id sent no letter.
    client_since: i64,
    name: String,
    email: String,
    password_hash: String,
    next: String,
    until: i64,
}

#[derive(Serialize, Deserialize)]
struct ResetLink {
    database: String,
    name: String,
    /// What the password was: the link is void when that has changed.
    stamp: String,
    /// Where the letter went: the link is void when that is the user's address no more.
    email: String,
    /// When the user was made: another one of this name got no letter.
    since: i64,
    until: i64,
}

impl Issuer {
    /// The letter with which somebody confirms a sign-up. `next` is the path where the browser
    /// goes on.
    ///
    /// [`Error::SignUpClosed`], [`Error::TooManyAttempts`], [`Error::Taken`], and what is wrong
    /// with the user: nothing is made yet, but nobody is sent a link that cannot work.
    pub async fn sign_up_letter(
        &self,
        client: &Client,
        new: NewUser,
        next: &str,
        visit: &Visit,
    ) -> Result<Letter> {
        if !client.allow_signup || new.database.as_str() != client.database {
            return Err(Error::SignUpClosed);
        }
        self.count_sign_up(visit).await?;
        let directory = Directory::new(self.ports.clone());
        let new = NewUser {
            signs_up: true,
            ..new
        };
        let (user, password_hash) = directory.prepare(&new).await?;
        let (Some(email), Some(password_hash)) = (user.email, password_hash) else {
            return Err(Error::MissingParameter("email"));
        };
        // Never given back: nobody's mailbox is filled from here.
        let limit = &self.settings.limits.letters;
        let counted = throttle::recipient(&email);
        self.attempts().count(counted, limit).await?;
        let now = self.ports.clock.now();
        let until = now.plus(self.settings.lifetimes.sign_up_link);
        let token = self.seal_link(
            SIGN_UP,
            &SignUpLink {
                database: user.key.database,
                client: client.id.clone(),
                client_since: client.created_at.millis(),
                name: user.key.name.clone(),
                email: email.clone(),
                password_hash,
                next: next.to_owned(),
                until: until.millis(),
            },
        )?;
        let (address, name) = (self.settings.issuer(), &user.key.name);
        Ok(Letter {
            to: email,
            subject: format!("Confirm your account for {}", one_line(&client.name)),
            text: format!(
                "Hello {name},\n\nconfirm your account here:\n\n\
                 {address}/signup/confirm?token={token}\n\n\
                 The link is good for a day. If you did not ask for an account, do nothing.\n"
            ),
        })
    }

    /// The name in the link of such a letter, to show before anything is made.
    ///
    /// [`Error::DeadLink`], [`Error::SignUpClosed`].
    pub async fn sign_up_name(&self, token: &str) -> Result<String> {
        Ok(self.sign_up_link(token).await?.name)
    }

    /// Makes the account of a link, which is good for one, and signs the browser in. Returns its
    /// cookie, and the path where it goes on.
    ///
    /// [`Error::DeadLink`], [`Error::SignUpClosed`], and the errors of [`Accounts::create`].
    pub async fn confirm_sign_up(
        &self,
        accounts: &Accounts,
        token: &str,
        visit: &Visit,
    ) -> Result<(Secret, String)> {
        let link = self.sign_up_link(token).await?;
        let database = TenantName::adopted(&link.database)?;
        let mut new = NewUser::new(database, UserName::parse(&link.name)?);
        new.email = Some(link.email);
        new.password_hash = Some(link.password_hash);
        new.signs_up = true;
        let accounts = accounts.acting_as(&link.name, visit.address);
        let user = self.use_sign_up_link(token, accounts.create(new)).await?;
        let cookie = self.open_browser(&user, visit, false).await?;
        Ok((cookie, link.next))
    }

    /// Notes that a link is used and makes its account; a link whose account cannot be made stays
    /// good. The note is a counter that allows one, and outlives the link.
    async fn use_sign_up_link(
        &self,
        token: &str,
        create: impl Future<Output = Result<User>> + Send,
    ) -> Result<User> {
        let lifetime = self.settings.lifetimes.sign_up_link;
        let once = AttemptLimit {
            count: 1,
            window: lifetime,
            first_delay: lifetime,
            longest_delay: lifetime,
            memory: lifetime,
        };
        let mut uses = self.attempts();
        match uses.count(throttle::link(token), &once).await {
            Err(Error::TooManyAttempts { .. }) => return Err(Error::DeadLink),
            counted => counted?,
        }
        let made = create.await;
        if made.is_err() {
            uses.give_back().await?;
        }
        made
    }

    async fn sign_up_link(&self, token: &str) -> Result<SignUpLink> {
        let link: SignUpLink = self.open_link(SIGN_UP, token)?;
        self.still(link.until)?;
        let client = self.ports.store.client(&link.client).await?;
        let same = |client: &Client| {
            client.database == link.database && client.created_at.millis() == link.client_since
        };
        if client.is_some_and(|client| client.allow_signup && same(&client)) {
            Ok(link)
        } else {
            Err(Error::SignUpClosed)
        }
    }

    /// Counts that a visitor asks for a letter, whoever it is for.
    ///
    /// [`Error::TooManyAttempts`] by the visitor's address.
    pub async fn count_letter(&self, visit: &Visit) -> Result<()> {
        let Some(address) = visit.address else {
            return Ok(());
        };
        let key = throttle::address(AttemptScope::Letter, address);
        let limit = &self.settings.limits.letters_of_address;
        self.attempts().count(key, limit).await
    }

    /// The letters for somebody who forgot a password: to the user of this name, or to the users
    /// with this address of e-mail. None for a user without an address, and when enough were sent.
    ///
    /// This takes longer for a user who is there, so it belongs behind the answer.
    pub async fn reset_letters(&self, database: &str, name: &str) -> Result<Vec<Letter>> {
        let limits = &self.settings.limits;
        let key = UserKey::new(database, name);
        let counted = throttle::letters(&key);
        match self.attempts().count(counted, &limits.letters).await {
            Ok(()) => {}
            // Enough letters are on their way.
            Err(Error::TooManyAttempts { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        let store = &self.ports.store;
        let mut users: Vec<User> = store.user(&key).await?.into_iter().collect();
        if users.is_empty() && name.contains('@') {
            users = store.users_with_email(database, name).await?;
        }
        users.truncate(NAMESAKES);
        let letters = users.iter().filter_map(|user| self.reset_letter(user));
        letters.collect()
    }

    fn reset_letter(&self, user: &User) -> Option<Result<Letter>> {
        // Nobody signs in as the user that strangers share.
        let to = user.email.clone().filter(|_| !user.default_user)?;
        let until = self
            .ports
            .clock
            .now()
            .plus(self.settings.lifetimes.reset_link);
        let sealed = self.seal_link(
            RESET,
            &ResetLink {
                database: user.key.database.clone(),
                name: user.key.name.clone(),
                stamp: stamp(user).to_base64url(),
                email: to.clone(),
                since: user.created_at.millis(),
                until: until.millis(),
            },
        );
        let (address, name) = (self.settings.issuer(), &user.key.name);
        Some(sealed.map(|token| Letter {
            to,
            subject: format!("A new password for {name}"),
            text: format!(
                "Hello {name},\n\nchoose a new password here:\n\n{address}/reset?token={token}\n\n\
                 The link is good for an hour and for one password. If you did not ask for it, do \
                 nothing.\n"
            ),
        }))
    }

    /// Whose password the link of such a letter changes.
    ///
    /// [`Error::DeadLink`] when it is none of ours, too old, or was used, and when the user's
    /// address of e-mail is another one by now.
    pub async fn reset_user(&self, token: &str) -> Result<UserKey> {
        let link: ResetLink = self.open_link(RESET, token)?;
        self.still(link.until)?;
        let key = UserKey::new(link.database, link.name);
        let user = self.ports.store.user(&key).await?;
        let same = |user: &User| {
            stamp(user).to_base64url() == link.stamp
                && user.email.as_ref() == Some(&link.email)
                && user.created_at.millis() == link.since
                && !user.default_user
        };
        match user.filter(same) {
            Some(user) => Ok(user.key),
            None => Err(Error::DeadLink),
        }
    }

    /// Sets the password of the link's user and ends the user's sessions, in browsers too.
    ///
    /// [`Error::DeadLink`], [`Error::InvalidMember`] unless it has 8 to 256 bytes.
    pub async fn reset_password(&self, token: &str, new: &Secret, visit: &Visit) -> Result<()> {
        let key = self.reset_user(token).await?;
        let directory = Directory::new(self.ports.clone());
        let directory = directory.acting_as(&key.name, visit.address);
        directory.set_password(&key, new).await?;
        self.refresh_denylist().await
    }

    pub(super) fn still(&self, until: i64) -> Result<()> {
        if self.ports.clock.now() < Timestamp::from_millis(until) {
            Ok(())
        } else {
            Err(Error::DeadLink)
        }
    }

    /// What only we can read, as text for an address.
    pub(crate) fn seal_link(&self, purpose: &str, content: &impl Serialize) -> Result<String> {
        let plain = serde_json::to_vec(content).map_err(|_| Error::DamagedKey)?;
        let sealed = self.master.seal(purpose, &plain, &*self.ports.random)?;
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// What [`seal_link`](Self::seal_link) made for the same purpose; [`Error::DeadLink`] else.
    pub(crate) fn open_link<T: DeserializeOwned>(&self, purpose: &str, token: &str) -> Result<T> {
        if token.len() > LONGEST {
            return Err(Error::DeadLink);
        }
        let sealed = URL_SAFE_NO_PAD.decode(token);
        let sealed = sealed.map_err(|_| Error::DeadLink)?;
        let plain = self.master.open(purpose, &sealed);
        let plain = plain.map_err(|_| Error::DeadLink)?;
        serde_json::from_slice(&plain).map_err(|_| Error::DeadLink)
    }
}

fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
