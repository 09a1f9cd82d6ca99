//! Prepares a run: tables, methods, users, tenants.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::Result;
use crate::accounts::{BenchTenant, Tokens};
use crate::arguments::Arguments;
use crate::load::Caller;
use crate::service::{self, Service, post, send};
use crate::shape::Shape;

const TABLES: &str = include_str!("../sql/tables.sql");
const NOTES: &str = include_str!("../sql/notes.sql");
/// The number of rows of each user in `bench_notes`. Shapes contain the same number in `own(20)`.
const NOTES_EACH: u32 = 20;
/// The number of users of each tenant of `--tenants`.
const USERS_OF_TENANT: u32 = 3;
const OWNER_PASSWORD: &str = "bench-owner-1";

/// The callers of all cases.
#[derive(Debug)]
pub(crate) struct People {
    /// The demo's tenant.
    pub(crate) tenant: BenchTenant,
    /// The default user of the demo's tenant.
    pub(crate) guest: Caller,
    /// The sub-users of the demo's tenant.
    pub(crate) users: Arc<[Caller]>,
    /// The users of all tenants of `--tenants`.
    pub(crate) of_tenants: Arc<[Caller]>,
}

impl People {
    /// The first `count` sub-users of the demo's tenant, or all if there are fewer.
    pub(crate) fn first_users(&self, count: u32) -> Arc<[Caller]> {
        let count = self.users.len().min(count as usize);
        self.users[..count].into()
    }
}

/// Creates the tables and methods of the shapes.
pub(crate) async fn tables(service: &Service, shapes: &[Shape]) -> Result<()> {
    let client = service.client().await?;
    let made = client.query_one("select to_regclass('public.bench_notes') is not null", &[]);
    if !made.await?.get::<_, bool>(0) {
        client.batch_execute(TABLES).await?;
        client
            .batch_execute(&format!("set role demo; {NOTES}"))
            .await?;
    }
    for method in shapes.iter().filter_map(Shape::method) {
        define(service, &method).await?;
    }
    Ok(())
}

/// Creates a method, with the owner's token. If the method is already in a kept folder, updates it.
async fn define(service: &Service, method: &Value) -> Result<()> {
    let authorization = format!("Authorization: Bearer {}\r\n", service.owner_token);
    let body = json!([method]).to_string();
    let posted = post(service.address, "/api/v4/methods", &authorization, &body).await;
    let Err(error) = posted else { return Ok(()) };
    if !error.to_string().starts_with("HTTP/1.1 409") {
        return Err(error);
    }
    let path = format!(
        "/api/v4/methods/{}",
        method["method"].as_str().unwrap_or_default()
    );
    let body = json!({ "q": method["q"] }).to_string();
    let request = format!("PATCH {path}");
    send(service.address, &request, &authorization, &body).await?;
    Ok(())
}

/// Creates the users and tenants that the cases need.
pub(crate) async fn people(service: &Service, users: u32, arguments: &Arguments) -> Result<People> {
    let tenant = BenchTenant {
        address: service.address,
        name: "demo".to_owned(),
        client: "demo-app".to_owned(),
        owner_token: service.owner_token.clone(),
        members: arguments.members,
        impersonate: arguments.impersonate,
    };
    let file = service.path.join("users.json");
    let tokens = Tokens(&file);
    let made = tenant.users(users, &tokens).await?;
    let seconds = made.time.as_secs_f64();
    if made.new > 1 {
        println!(
            "{} users signed up and in within {seconds:.1} s: {:.1} a second",
            made.new,
            made.new as f64 / seconds
        );
    }
    if users > 0 {
        service.run(&notes_of("demo", users)).await?;
        service.run(RIGHTS_OF_GROUP).await?;
        if arguments.members {
            service.run(POLICY_FOR_MEMBERS).await?;
        }
    }
    let mut of_tenants = Vec::new();
    for number in 0..arguments.active_tenants() {
        of_tenants.extend(one_tenant(service, number, &tokens).await?);
    }
    for number in arguments.active_tenants()..arguments.tenants {
        idle_tenant(service, number).await?;
    }
    service.run("vacuum analyze").await?;
    let guest = Caller {
        token: Some(service.guest_token.clone()),
        number: 0,
    };
    Ok(People {
        tenant,
        guest,
        users: made.callers.into(),
        of_tenants: of_tenants.into(),
    })
}

const RIGHTS_OF_GROUP: &str = "grant select on bench, bench_labels, bench_artists, bench_albums, \
    bench_tracks to \"demo/group/bench\"; \
    grant select, insert, update on bench_notes to \"demo/group/bench\"";

const POLICY_FOR_MEMBERS: &str = "alter table bench_notes alter author set default tidegate.user_id(); \
    alter policy own on bench_notes \
    using (author = (select tidegate.user_id())) with check (author = (select tidegate.user_id()))";

/// The SQL that creates the notes of each user, unless the notes exist.
fn notes_of(tenant: &str, users: u32) -> String {
    format!(
        "insert into bench_notes (id, author, title, body) \
         select u * {NOTES_EACH} + n, '{tenant}/bench-' || lpad(u::text, 5, '0'), \
         'note ' || n, repeat('a note of ' || u || ' ', 5) \
         from generate_series(0, {users} - 1) u, generate_series(1, {NOTES_EACH}) n \
         on conflict do nothing"
    )
}

fn tenant_name(number: u32) -> String {
    format!("bench_{number:04}")
}

/// Creates a tenant without users, unless it exists.
async fn idle_tenant(service: &Service, number: u32) -> Result<()> {
    let name = tenant_name(number);
    let client = service.client().await?;
    let known = "select from pg_database where datname = $1";
    if client.query_opt(known, &[&name]).await?.is_none() {
        create_tenant(service, &name)?;
    }
    Ok(())
}

/// Creates a tenant without users if it does not exist. Returns the tenant, and whether it is new.
pub(crate) async fn owner(service: &Service, number: u32) -> Result<(BenchTenant, bool)> {
    let name = tenant_name(number);
    let client = format!("{name}-app");
    let sign_in = json!({ "grant_type": "password", "username": name, "password": OWNER_PASSWORD,
        "client_id": client })
    .to_string();
    let known = service::token(service.address, "/api/v4/oauth", &sign_in).await;
    let new = known.is_err();
    let owner_token = if let Ok(token) = known {
        token
    } else {
        create_tenant(service, &name)?;
        create_client(service, &name, &client)?;
        service::token(service.address, "/api/v4/oauth", &sign_in).await?
    };
    let tenant = BenchTenant {
        address: service.address,
        name,
        client,
        owner_token,
        members: false,
        impersonate: false,
    };
    Ok((tenant, new))
}

/// Creates a tenant with users and a table of notes.
async fn one_tenant(service: &Service, number: u32, tokens: &Tokens<'_>) -> Result<Vec<Caller>> {
    let (tenant, new) = owner(service, number).await?;
    let made = tenant.users(USERS_OF_TENANT, tokens).await?;
    if new {
        let name = &tenant.name;
        let authorization = format!("Authorization: Bearer {}\r\n", tenant.owner_token);
        let rights =
            format!("grant select, insert, update on bench_notes to \"{name}/group/bench\"");
        for statement in [NOTES, &notes_of(name, USERS_OF_TENANT), &rights] {
            let statements: Vec<Value> = split(statement).map(|q| json!({ "q": q })).collect();
            let body = json!(statements).to_string();
            post(service.address, "/api/v4/sql", &authorization, &body).await?;
        }
    }
    Ok(made.callers)
}

/// Splits a text into statements at each `;`. Values and comments must not contain this character.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let statements = text.split(';').map(str::trim);
    statements.filter(|statement| !statement.is_empty())
}

/// Creates a tenant with the command line of the service, as an operator does.
fn create_tenant(service: &Service, name: &str) -> Result<()> {
    let password = service.path.join("owner-password");
    std::fs::write(&password, OWNER_PASSWORD)?;
    let password = password.to_string_lossy();
    run_command(
        service,
        &["tenant", "create", name, "--password-file", &password],
    )
}

/// Creates the OAuth client of a tenant's users.
fn create_client(service: &Service, name: &str, client: &str) -> Result<()> {
    let redirect = "http://127.0.0.1/callback";
    run_command(
        service,
        &[
            "client",
            "create",
            name,
            "Bench",
            "--id",
            client,
            "--public",
            "--redirect-uri",
            redirect,
        ],
    )
}

fn run_command(service: &Service, arguments: &[&str]) -> Result<()> {
    let admin = service
        .tcp_url
        .rsplit_once('/')
        .map(|(server, _)| format!("{server}/postgres"));
    let output = std::process::Command::new(&service.binary)
        .args(arguments)
        .env("TIDEGATE_ADMIN_URL", admin.unwrap_or_default())
        .env("TIDEGATE_CONTROL_DATABASE", "tidegate")
        .env(
            "TIDEGATE_MASTER_KEY_FILE",
            service.path.join("demo/master.key"),
        )
        .env("TIDEGATE_PUBLIC_URL", format!("http://{}", service.address))
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    Err(format!("tidegate {}: {printed}", arguments.join(" ")).into())
}
