//! Creates sub-users of a tenant over REST and gets a token for each. The refresh tokens are stored
//! in a file, so that the next run on the same data does not create the users again.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::Result;
use crate::connection::{Connection, HttpResponse};
use crate::load::Caller;

const PASSWORD: &str = "bench-password-1";
/// The password hash of users that do not sign in. The service stores a hash from a request
/// unchanged, which is faster than hashing a password.
pub(crate) const HASH: &str = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e";
/// The group of all created users. Privileges are granted to this group.
const GROUP: &str = "bench";

/// A tenant, and the address of the service.
#[derive(Clone, Debug)]
pub(crate) struct BenchTenant {
    /// The address of the service.
    pub(crate) address: SocketAddr,
    /// The tenant's name.
    pub(crate) name: String,
    /// The id of a public client of the tenant.
    pub(crate) client: String,
    /// The owner's access token.
    pub(crate) owner_token: String,
    /// Whether the tenant's users are members.
    pub(crate) members: bool,
    /// Whether the owner gets the tokens of the users, who then do not sign in.
    pub(crate) impersonate: bool,
}

/// The path of a file that has, for each tenant, the refresh tokens of its existing users.
#[derive(Debug)]
pub(crate) struct Tokens<'a>(pub(crate) &'a Path);

/// The result of [`BenchTenant::users`].
#[derive(Debug)]
pub(crate) struct Made {
    /// The users, each with an access token.
    pub(crate) callers: Vec<Caller>,
    /// The number of users that were created in this run.
    pub(crate) new: usize,
    /// How long the creation took.
    pub(crate) time: Duration,
}

/// The SQL expression with which a client of pgbench computes a role's name from its own number, as
/// [`name`] does.
pub(crate) const ROLE_OF_CLIENT: &str = "'demo/bench-' || lpad(:client_id::text, 5, '0')";

/// The name of the user with this number.
pub(crate) fn name(number: u32) -> String {
    format!("bench-{number:05}")
}

impl BenchTenant {
    /// Gets a token for each user with a number below `count`. Creates the users that do not exist
    /// yet.
    pub(crate) async fn users(&self, count: u32, tokens: &Tokens<'_>) -> Result<Made> {
        let mut all = tokens.read()?;
        let known = all.remove(&self.name).unwrap_or_default();
        let started = Instant::now();
        let next = Cell::new(0_u32);
        let results = RefCell::new(BTreeMap::new());
        let worker = async || -> Result<()> {
            let mut connection = Connection::open(self.address).await?;
            loop {
                let number = next.replace(next.get() + 1);
                if number >= count {
                    return Ok(());
                }
                let refresh = known.get(number as usize).map(String::as_str);
                let given = self.tokens(&mut connection, number, refresh).await?;
                results.borrow_mut().insert(number, given);
                if refresh.is_none() && number % 1000 == 999 {
                    println!("{} users have signed up", number + 1);
                }
            }
        };
        // The service hashes passwords on few threads. More concurrent requests would only wait for
        // a free thread.
        tokio::try_join!(
            worker(),
            worker(),
            worker(),
            worker(),
            worker(),
            worker(),
            worker(),
            worker()
        )?;
        let time = started.elapsed();
        let (mut callers, mut refresh) = (Vec::new(), Vec::new());
        for (number, (access, again)) in results.into_inner() {
            callers.push(Caller {
                token: Some(access),
                number,
            });
            refresh.push(again);
        }
        // Later runs may need more users than this run, so the file also keeps the refresh tokens
        // of further users.
        refresh.extend(known.iter().skip(count as usize).cloned());
        all.insert(self.name.clone(), refresh);
        tokens.write(&all)?;
        let new = (count as usize).saturating_sub(known.len());
        Ok(Made { callers, new, time })
    }

    /// Returns an access token and a refresh token of one user, who is created if `refresh` is
    /// `None`. If the owner gets the tokens, the refresh token is empty.
    async fn tokens(
        &self,
        connection: &mut Connection,
        number: u32,
        refresh: Option<&str>,
    ) -> Result<(String, String)> {
        if let Some(refresh) = refresh.filter(|refresh| !refresh.is_empty()) {
            let body = json!({ "grant_type": "refresh_token", "client_id": self.client,
                "refresh_token": refresh });
            let response = self
                .post(connection, "/api/v4/oauth", None, (number, &body))
                .await?;
            if response.status == 200 {
                return pair(&response);
            }
        } else {
            self.sign_up(connection, &name(number), number).await?;
        }
        if self.impersonate {
            let path = format!("/api/v4/users/{}/token", name(number));
            let owner = Some(&*self.owner_token);
            let body = json!({});
            let response = self.post(connection, &path, owner, (number, &body)).await?;
            return Ok((text(&response, "access_token")?, String::new()));
        }
        let body = json!({ "grant_type": "password", "client_id": self.client,
            "database": self.name, "username": name(number), "password": PASSWORD });
        let response = self
            .post(connection, "/api/v4/oauth", None, (number, &body))
            .await?;
        pair(&response)
    }

    /// Creates one user. An existing user is not an error.
    pub(crate) async fn sign_up(
        &self,
        connection: &mut Connection,
        name: &str,
        number: u32,
    ) -> Result<()> {
        let mut body = json!({ "name": name, "user_group": GROUP });
        if self.impersonate {
            body["password_hash"] = json!(HASH);
        } else {
            body["password"] = json!(PASSWORD);
        }
        if self.members {
            body["kind"] = json!("member");
            // The notes of the member have this id as their author.
            body["id"] = json!(format!("{}/{name}", self.name));
        }
        let owner = Some(&*self.owner_token);
        let response = self
            .post(connection, "/api/v4/users", owner, (number, &body))
            .await?;
        match response.status {
            201 | 409 => Ok(()),
            _ => Err(format!("sign-up of {name}: {}", response.body).into()),
        }
    }

    /// Sends a body. The client address is derived from `number`, so that rate limits do not apply.
    /// Retries while the service is busy.
    async fn post(
        &self,
        connection: &mut Connection,
        path: &str,
        token: Option<&str>,
        (number, body): (u32, &Value),
    ) -> Result<HttpResponse> {
        let [_, b, c, d] = number.to_be_bytes();
        let body = body.to_string();
        let authorization = token.map_or_else(String::new, |token| {
            format!("Authorization: Bearer {token}\r\n")
        });
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nX-Forwarded-For: 10.{b}.{c}.{d}\r\n\
             X-Forwarded-Proto: https\r\n\
             {authorization}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        loop {
            let response = connection.ask(request.as_bytes()).await?;
            match response.status {
                429 | 503 => sleep(Duration::from_secs(response.retry_after.unwrap_or(1))).await,
                _ => return Ok(response),
            }
        }
    }
}

fn pair(response: &HttpResponse) -> Result<(String, String)> {
    Ok((
        text(response, "access_token")?,
        text(response, "refresh_token")?,
    ))
}

fn text(response: &HttpResponse, member: &str) -> Result<String> {
    let members: Value = serde_json::from_str(&response.body)?;
    let text = members[member].as_str().map(str::to_owned);
    text.ok_or_else(|| format!("no {member}: {}", response.body).into())
}

impl Tokens<'_> {
    fn read(&self) -> Result<BTreeMap<String, Vec<String>>> {
        match fs::read_to_string(self.0) {
            Ok(text) => Ok(serde_json::from_str(&text)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&self, all: &BTreeMap<String, Vec<String>>) -> Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(self.0)?;
        Ok(file.write_all(json!(all).to_string().as_bytes())?)
    }
}
