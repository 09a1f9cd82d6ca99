//! One issuer with a tenant, its users and its clients.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use tidegate_identity::{
    Browser, ManualClock, MasterKey, NewOwner, NewUser, PasswordHasher, RequestContext, Secret,
    TenantName, Timestamp, UserDirectory, UserKey, UserName,
};
use tidegate_oauth::{
    BasicCredentials, ClientDirectory, Error, GuestRequest, Issuer, MemoryStore, NewClient,
    Parameters, Ports, Result, Settings, TokenManagementRequest, TokenRequest, TokenResponse,
};
use tidegate_testkit::CHEAP;
pub(crate) use tidegate_testkit::SeededRandom;

pub(crate) const ISSUER: &str = "https://id.example";
pub(crate) const HOUR: Duration = Duration::from_hours(1);
pub(crate) const DAY: Duration = Duration::from_hours(24);
pub(crate) const HERE: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));

pub(crate) static MASTER: LazyLock<MasterKey> =
    LazyLock::new(|| MasterKey::generate(&SeededRandom::new(1)).unwrap());

/// A running issuer: tenant `demo` with owner `demo`, user `alice`, default user `guest`; public
/// client `app`, confidential client `server`; tenant `other` with owner `other` and client
/// `alien`.
pub(crate) struct Fixture {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ports: Ports,
    pub(crate) directory: UserDirectory,
    pub(crate) clients: ClientDirectory,
    pub(crate) issuer: Arc<Issuer>,
}

pub(crate) fn ports(store: &Arc<MemoryStore>, clock: &Arc<ManualClock>) -> Ports {
    let random = Arc::new(SeededRandom::new(7));
    let hasher = Arc::new(PasswordHasher::start(2, CHEAP, &*random).unwrap());
    Ports {
        store: store.clone(),
        clock: clock.clone(),
        random,
        hasher,
    }
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let ports = ports(&store, &clock);
        let directory = UserDirectory::new(ports.identity());
        let clients = ClientDirectory::new(ports.clone());
        fill(&directory, &clients).await;
        let issuer = node(&ports).await;
        Self {
            store,
            clock,
            ports,
            directory,
            clients,
            issuer,
        }
    }

    pub(crate) async fn password(&self, user: &str, password: &str) -> Result<TokenResponse> {
        self.token(&[
            ("grant_type", "password"),
            ("client_id", "app"),
            ("database", "demo"),
            ("username", user),
            ("password", password),
        ])
        .await
    }

    /// A browser in which this user is signed in.
    pub(crate) async fn browser(&self, database: &str, name: &str) -> Browser {
        let user = self.directory.user(&UserKey::new(database, name)).await;
        let (user, context) = (user.unwrap(), RequestContext::default());
        let cookie = self
            .issuer
            .identity()
            .open_browser_session(&user, &context, false);
        let browser = self.issuer.identity().browser(&cookie.await.unwrap()).await;
        browser.unwrap().unwrap()
    }

    pub(crate) async fn alice(&self) -> TokenResponse {
        self.password("alice", "alice1234").await.unwrap()
    }

    pub(crate) async fn refresh(&self, token: &Secret) -> Result<TokenResponse> {
        self.token(&[
            ("grant_type", "refresh_token"),
            ("client_id", "app"),
            ("refresh_token", token.expose()),
        ])
        .await
    }

    pub(crate) async fn token(&self, pairs: &[(&str, &str)]) -> Result<TokenResponse> {
        let request = TokenRequest::parse(&Parameters::from_pairs(pairs.iter().copied()), None)?;
        self.issuer.token(request, HERE).await
    }

    pub(crate) async fn guest(&self, pairs: &[(&str, &str)]) -> Result<TokenResponse> {
        let request = GuestRequest::parse(&Parameters::from_pairs(pairs.iter().copied()), None)?;
        self.issuer.guest(request, HERE).await
    }

    pub(crate) async fn revoke(&self, token: &Secret) -> Result<()> {
        self.issuer.revoke(about("app", token), HERE).await
    }

    pub(crate) async fn introspect(&self, token: &Secret) -> Value {
        let basic = BasicCredentials::new("server", "demo-server-secret");
        let pairs = Parameters::from_pairs([("token", token.expose())]);
        let request = TokenManagementRequest::parse(&pairs, Some(&basic)).unwrap();
        let response = self.issuer.introspect(request, HERE).await.unwrap();
        serde_json::from_str(&response.to_json()).unwrap()
    }

    /// The names of the audit events so far.
    pub(crate) fn audit(&self) -> Vec<&'static str> {
        self.store
            .audit_log()
            .iter()
            .map(|event| event.kind.name())
            .collect()
    }
}

pub(crate) fn about(client_id: &str, token: &Secret) -> TokenManagementRequest {
    let pairs = [("client_id", client_id), ("token", token.expose())];
    TokenManagementRequest::parse(&Parameters::from_pairs(pairs), None).unwrap()
}

/// Another node over the same store.
pub(crate) async fn node(ports: &Ports) -> Arc<Issuer> {
    let settings = Settings::new(ISSUER).unwrap();
    Arc::new(
        Issuer::start(ports.clone(), MASTER.clone(), settings)
            .await
            .unwrap(),
    )
}

async fn fill(directory: &UserDirectory, clients: &ClientDirectory) {
    let demo = TenantName::parse("demo").unwrap();
    for (database, password) in [("demo", "demo1234"), ("other", "other1234")] {
        let database = TenantName::parse(database).unwrap();
        let password = Some(Secret::new(password));
        directory
            .create_owner(NewOwner {
                database,
                role: None,
                password,
            })
            .await
            .unwrap();
    }
    let alice = NewUser {
        password: Some(Secret::new("alice1234")),
        email: Some("alice@example.org".to_owned()),
        properties: serde_json::from_str(r#"{"team":"reef"}"#).unwrap(),
        ..NewUser::new(demo.clone(), UserName::parse("alice").unwrap())
    };
    directory.create_user(alice).await.unwrap();
    let guest = UserName::parse("guest").unwrap();
    let guest = NewUser {
        default_user: true,
        ..NewUser::new(demo.clone(), guest)
    };
    directory.create_user(guest).await.unwrap();
    let uris = || vec!["http://127.0.0.1:5173/callback".to_owned()];
    let app = NewClient {
        id: Some("app".to_owned()),
        public: true,
        ..NewClient::new(demo.clone(), "App", uris())
    };
    let server = NewClient {
        id: Some("server".to_owned()),
        secret: Some(Secret::new("demo-server-secret")),
        ..NewClient::new(demo, "Server", uris())
    };
    let alien = NewClient {
        id: Some("alien".to_owned()),
        secret: Some(Secret::new("alien-secret")),
        ..NewClient::new(TenantName::parse("other").unwrap(), "Alien", uris())
    };
    for client in [app, server, alien] {
        clients.create_client(client).await.unwrap();
    }
}

/// A segment of a token as JSON: 0 is the header, 1 the payload.
pub(crate) fn segment(token: &Secret, index: usize) -> Value {
    let segment = token.expose().split('.').nth(index).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(segment).unwrap()).unwrap()
}

/// The error code of a failure.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, impl Into<Error>>) -> &'static str {
    match result {
        Ok(value) => panic!("succeeded with {value:?}"),
        Err(error) => error.into().code(),
    }
}
