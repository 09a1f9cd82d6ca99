//! Measures what checking an access token costs: remembered, and the first time.
//!
//! `cargo run --release -p tidegate-oauth --example verify_speed`

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use tidegate_oauth::{
    Directory, GuestRequest, Issuer, MasterKey, MemoryStore, NewClient, NewUser, Parameters,
    PasswordCost, PasswordHasher, Ports, Result, Secret, Settings, SystemRandom, TenantName,
    UserName,
};

const TOKENS: u32 = 2_000;
const ROUNDS: u32 = 200;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "it prints what it measured")]
async fn main() -> Result<()> {
    let issuer = issuer().await?;
    let mut tokens: Vec<Secret> = Vec::new();
    for _ in 0..TOKENS {
        let asked = Parameters::from_json(br#"{"database":"reef","client_id":"map"}"#)?;
        let given = issuer
            .guest(GuestRequest::parse(&asked, None)?, None)
            .await?;
        tokens.push(given.access_token);
    }
    let started = Instant::now();
    for token in &tokens {
        issuer.verify(token.expose())?;
    }
    let first = started.elapsed() / TOKENS;
    let started = Instant::now();
    for _ in 0..ROUNDS {
        for token in &tokens {
            issuer.verify(token.expose())?;
        }
    }
    let remembered = started.elapsed() / (TOKENS * ROUNDS);
    println!("the first time {first:?}, remembered {remembered:?}");
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a program takes the time from the system"
)]
async fn issuer() -> Result<Issuer> {
    let random = Arc::new(SystemRandom::new());
    let ports = Ports {
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(SystemTime::now),
        random: random.clone(),
        hasher: Arc::new(PasswordHasher::start(1, PasswordCost::default(), &*random)?),
    };
    let directory = Directory::new(ports.clone());
    let reef = TenantName::parse("reef")?;
    let visitor = NewUser {
        default_user: true,
        ..NewUser::new(reef.clone(), UserName::parse("visitor")?)
    };
    directory.create_user(visitor).await?;
    let map = NewClient {
        id: Some("map".to_owned()),
        public: true,
        ..NewClient::new(reef, "Map", vec!["https://map.example/".to_owned()])
    };
    directory.create_client(map).await?;
    let settings = Settings::new("https://id.example")?;
    Issuer::start(ports, MasterKey::generate(&*random)?, settings).await
}
