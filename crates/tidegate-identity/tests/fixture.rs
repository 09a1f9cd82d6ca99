//! A service with the tenant `demo`, its owner `demo` and its user `alice`.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_identity::{
    Error, IdentityService, ManualClock, MasterKey, MemoryStore, NewOwner, NewUser, PasswordCost,
    PasswordHasher, Ports, Result, Secret, SecureRandom, Settings, TenantName, Timestamp,
    UserDirectory, UserName,
};

/// The cheapest parameters that Argon2id allows.
pub(crate) const CHEAP: PasswordCost = PasswordCost {
    memory_kib: 8,
    passes: 1,
    lanes: 1,
};

/// A `SplitMix64` generator with a fixed seed, which yields the same bytes in every run.
pub(crate) struct SeededRandom(AtomicU64);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl SecureRandom for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        let step = 0x9e37_79b9_7f4a_7c15;
        for chunk in bytes.chunks_mut(8) {
            let mut z = self.0.fetch_add(step, Ordering::SeqCst).wrapping_add(step);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

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
