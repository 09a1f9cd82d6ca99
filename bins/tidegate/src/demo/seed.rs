//! The demo's sample data: a tenant with users, clients, tables and rows.

use tidegate_identity::{AnonymousSql, NewUser, Secret, TenantName, UserName};
use tidegate_oauth::NewClient;
use tidegate_sql::{DatabaseName, RoleName};

use super::TENANT;
use crate::cli_error::Result;
use crate::command::{create_tenant, create_user, drop_tenant};
use crate::service::Service;

const SCHEMA: &str = include_str!("../../demo/schema.sql");
const DATA: &str = include_str!("../../demo/data.sql");
const RIGHTS: &str = include_str!("../../demo/rights.sql");

const REDIRECT_URIS: [&str; 2] = [
    "http://127.0.0.1:5173/callback",
    "http://localhost:5173/callback",
];
/// The redirect URI of GraphiQL's sign-in window. A redirect URI with a loopback address matches
/// any port.
const GRAPHIQL: &str = "http://127.0.0.1:8080/assets/graphiql/signed-in.html";
/// The id of the client that is created last. If this client exists, the demo's data is complete.
const LAST_CLIENT: &str = "demo-server";

/// Creates the sample data, unless it exists completely. An incomplete tenant is dropped first.
pub(super) async fn fill(service: &Service) -> Result {
    if service.store.client(LAST_CLIENT).await?.is_some() {
        return Ok(());
    }
    let name = TenantName::parse(TENANT)?;
    let database = DatabaseName::new(TENANT);
    if let Some(half) = service.tenants.find(TENANT).await? {
        drop_tenant(service, &half, true).await?;
    } else {
        service
            .admin
            .drop_tenant(&database, &[TENANT.to_owned()])
            .await?;
    }
    create_tenant(service, &name, Secret::new("demo1234")).await?;
    create_users(service, &name).await?;
    // Anonymous callers may run SQL, because the first command in the README sends no token.
    let directory = service.users();
    directory
        .set_anonymous_sql(TENANT, AnonymousSql::Read)
        .await?;
    let owner = RoleName::new(TENANT);
    let sql = format!("begin;\n{SCHEMA}{DATA}{RIGHTS}commit;\n");
    service.admin.run_as(&database, &owner, &sql).await?;
    create_clients(service, &name).await
}

async fn create_users(service: &Service, tenant: &TenantName) -> Result {
    let mut alice = NewUser::new(tenant.clone(), UserName::parse("alice")?);
    alice.password = Some(Secret::new("alice1234"));
    create_user(service, alice).await?;
    let mut guest = NewUser::new(tenant.clone(), UserName::parse("guest")?);
    guest.default_user = true;
    create_user(service, guest).await
}

async fn create_clients(service: &Service, tenant: &TenantName) -> Result {
    let uris = REDIRECT_URIS.map(str::to_owned).to_vec();
    let mut of_app = uris.clone();
    of_app.push(GRAPHIQL.to_owned());
    let mut app = NewClient::new(tenant.clone(), "Demo application", of_app);
    app.id = Some("demo-app".to_owned());
    app.public = true;
    service.clients().create_client(app).await?;
    let mut server = NewClient::new(tenant.clone(), "Demo server", uris);
    server.id = Some(LAST_CLIENT.to_owned());
    server.secret = Some(Secret::new("demo-server-secret"));
    service.clients().create_client(server).await?;
    Ok(())
}
