//! A service with the tenant `demo`, its owner `demo` and its user `alice`.

use std::fmt::Debug;
use std::sync::Arc;

use tidegate_identity::{
    Error, IdentityService, ManualClock, MasterKey, MemoryStore, NewOwner, NewUser, PasswordHasher,
    Ports, Result, Secret, Settings, TenantName, Timestamp, UserDirectory, UserName,
};
pub(crate) use tidegate_testkit::{CHEAP, SeededRandom};

pub(crate) struct Fixture {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ports: Ports,
    pub(crate) directory: UserDirectory,
    pub(crate) service: IdentityService,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let random = Arc::new(SeededRandom::new(7));
        let hasher = Arc::new(PasswordHasher::start(2, CHEAP, &*random).unwrap());
        let master = MasterKey::generate(&*random).unwrap();
        let ports = Ports {
            store: store.clone(),
            clock: clock.clone(),
            random,
            hasher,
        };
        let directory = UserDirectory::new(ports.clone());
        let owner = NewOwner {
            database: demo(),
            role: None,
            password: Some(Secret::new("demo1234")),
        };
        directory.create_owner(owner).await.unwrap();
        let alice = NewUser {
            password: Some(Secret::new("alice1234")),
            email: Some("alice@example.org".to_owned()),
            ..NewUser::new(demo(), UserName::parse("alice").unwrap())
        };
        directory.create_user(alice).await.unwrap();
        let settings = Settings::new("https://id.example").unwrap();
        Self {
            service: IdentityService::new(ports.clone(), master, settings),
            store,
            clock,
            ports,
            directory,
        }
    }

    /// The names of the audit events so far.
    pub(crate) fn audit(&self) -> Vec<&'static str> {
        let log = self.store.audit_log();
        log.iter().map(|event| event.kind.name()).collect()
    }
}

pub(crate) fn demo() -> TenantName {
    TenantName::parse("demo").unwrap()
}

/// The name of the variant of an error.
pub(crate) fn fault<T: Debug>(result: Result<T, Error>) -> String {
    let text = format!("{:?}", result.unwrap_err());
    let end = text.find(|c: char| !c.is_alphanumeric());
    text[..end.unwrap_or(text.len())].to_owned()
}
