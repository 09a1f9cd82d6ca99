//! Makes tokens with a shorter lifetime, or with an earlier issue time, than those of the demo.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tidegate_identity::{MasterKey, PasswordCost, PasswordHasher, SystemRandom};
use tidegate_oauth::{Issuer, Parameters, Ports, Settings, TokenRequest};
use tidegate_service::ServiceConnections;
use tidegate_sql::{DatabaseName, Executor};
use tidegate_store::PgOauthStore;
use tidegate_wire::Config;
use tidegate_wire::backoff::Jitter;

use crate::service::demo;

#[expect(
    clippy::disallowed_methods,
    reason = "an issuer of the tests has the machine's time, as the binary has"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

/// An access token of the demo's owner, from a second issuer with the same keys. It was issued
/// `ago` before now, and is valid for `lifetime`.
pub(crate) async fn access_token(ago: Duration, lifetime: Duration) -> String {
    let key = std::fs::read_to_string(format!("{}/master.key", demo().data_dir)).unwrap();
    let mut config = Config::from_url(&demo().database_url).unwrap();
    config.control_database = DatabaseName::new("tidegate");
    let control = ServiceConnections::new(Arc::new(config), Jitter::none()).unwrap();
    let control: Arc<dyn Executor> = Arc::new(control);
    let random = Arc::new(SystemRandom::new());
    let hasher = PasswordHasher::start(1, PasswordCost::default(), &*random).unwrap();
    let ports = Ports {
        store: Arc::new(PgOauthStore::new(control)),
        clock: Arc::new(move || now() - ago),
        random,
        hasher: Arc::new(hasher),
    };
    let mut settings = Settings::new(&demo().url).unwrap();
    settings.lifetimes.access_token = lifetime;
    let issuer = Issuer::start(ports, MasterKey::parse(&key).unwrap(), settings)
        .await
        .unwrap();
    let form = "grant_type=password&client_id=demo-app&username=demo&password=demo1234";
    let parameters = Parameters::from_form(form.as_bytes()).unwrap();
    let request = TokenRequest::parse(&parameters, None).unwrap();
    let response = issuer.token(request, None).await.unwrap();
    response.access_token.expose().to_owned()
}
