//! Issues a guest token and prints it with the keys that verify it.
//!
//! `cargo run -p tidegate-oauth --example issue_token`

use std::sync::Arc;
use std::time::SystemTime;

use tidegate_identity::{
    MasterKey, NewUser, PasswordCost, PasswordHasher, SystemRandom, TenantName, UserDirectory,
    UserName,
};
use tidegate_oauth::{
    ClientDirectory, GuestRequest, Issuer, MemoryStore, NewClient, Parameters, Ports, Result,
    Settings,
};

#[tokio::main(flavor = "current_thread")]
#[expect(
    clippy::disallowed_methods,
    reason = "a program takes the time from the system"
)]
#[expect(clippy::print_stdout, reason = "an example shows what it made")]
async fn main() -> Result<()> {
    let random = Arc::new(SystemRandom::new());
    let hasher = Arc::new(PasswordHasher::start(1, PasswordCost::default(), &*random)?);
    let store = Arc::new(MemoryStore::new());
    let ports = Ports {
        store,
        clock: Arc::new(SystemTime::now),
        random: random.clone(),
        hasher,
    };

    let directory = UserDirectory::new(ports.identity());
    let reef = TenantName::parse("reef")?;
    let visitor = NewUser::new(reef.clone(), UserName::parse("visitor")?);
    directory
        .create_user(NewUser {
            default_user: true,
            ..visitor
        })
        .await?;
    let map = NewClient::new(reef, "Map", vec!["https://map.example/".to_owned()]);
    let map = NewClient {
        id: Some("map".to_owned()),
        public: true,
        ..map
    };
    ClientDirectory::new(ports.clone())
        .create_client(map)
        .await?;

    let settings = Settings::new("https://id.example")?;
    let issuer = Issuer::start(ports, MasterKey::generate(&*random)?, settings).await?;
    let request = Parameters::from_json(br#"{"database":"reef","client_id":"map"}"#)?;
    let response = issuer
        .guest(GuestRequest::parse(&request, None)?, None)
        .await?;

    println!("{}", response.to_json());
    println!("{}", issuer.key_set()?);
    println!("{:#?}", issuer.verify(response.access_token.expose())?);
    Ok(())
}
