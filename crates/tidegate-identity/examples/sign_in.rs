//! Creates a user, signs it in, and shows what a wrong password does:
//! `cargo run -p tidegate-identity --example sign_in`.

use std::sync::Arc;

use tidegate_identity::{
    IdentityService, ManualClock, MasterKey, MemoryStore, NewOwner, PasswordCost, PasswordHasher,
    Ports, RequestContext, Result, Secret, Settings, SystemRandom, TenantName, Timestamp,
    UserDirectory, UserKey,
};

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<()> {
    let random = Arc::new(SystemRandom::new());
    let ports = Ports {
        store: Arc::new(MemoryStore::<()>::new()),
        clock: Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000))),
        hasher: Arc::new(PasswordHasher::start(1, PasswordCost::default(), &*random)?),
        random: random.clone(),
    };
    let owner = NewOwner {
        database: TenantName::parse("demo")?,
        role: None,
        password: Some(Secret::new("demo1234")),
    };
    UserDirectory::new(ports.clone())
        .create_owner(owner)
        .await?;

    let settings = Settings::new("https://id.example")?;
    let service = IdentityService::new(ports, MasterKey::generate(&*random)?, settings);
    let context = RequestContext::default();
    for password in ["demo1234", "guessed1"] {
        let key = UserKey::owner("demo");
        match service
            .sign_in(key, &Secret::new(password), None, &context)
            .await
        {
            Ok(cookie) => {
                let browser = service.browser(&cookie).await?;
                let name = browser.map(|browser| browser.user.key.name);
                println!("signed in as {}", name.unwrap_or_default());
            }
            Err(error) => println!("refused: {error}"),
        }
    }
    Ok(())
}
