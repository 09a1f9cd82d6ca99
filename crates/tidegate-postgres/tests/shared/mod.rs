//! Shared connections of a tenant's users.

mod attacks;
mod faults;
mod functions;
mod interleaved;
mod many;
mod messages;
mod one_caller;
mod outage;
mod pipelines;
mod role_plans;
mod writes;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tidegate_postgres::{Authentication, scram_verifier};
use tidegate_sql::{Author, BoxFuture, DatabaseName, Login, Mode, Result, RoleName, RoleUse};

use crate::fixture::{Fixture, Sql, in_transaction, password};

/// Lets every user use one authenticator until it is closed.
#[derive(Default)]
pub(crate) struct FixedAuthenticator {
    closed: AtomicBool,
    invalidated: AtomicUsize,
}

impl FixedAuthenticator {
    fn invalidated(&self) -> usize {
        self.invalidated.load(Ordering::SeqCst)
    }
}

impl Authentication for FixedAuthenticator {
    fn of<'a>(
        &'a self,
        database: &'a DatabaseName,
        _: &'a RoleName,
    ) -> BoxFuture<'a, Option<RoleName>> {
        let open = !self.closed.load(Ordering::SeqCst);
        let role = open.then(|| RoleName::new(format!("{database}/$authenticator1")));
        Box::pin(std::future::ready(role))
    }

    fn invalidate(&self, _: &DatabaseName) {
        self.invalidated.fetch_add(1, Ordering::SeqCst);
    }

    fn login_refused(&self, _: &DatabaseName, _: &RoleName) {}

    fn forget(&self, _: &DatabaseName) {}

    fn refresh(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn switch(&self) -> &'static str {
        "SELECT pg_catalog.set_config('role', $1, true)"
    }
}

/// A fixture whose users `<name>/u1` and so on share an authenticator.
async fn tenant(name: &str, users: usize) -> (Arc<Fixture>, Arc<FixedAuthenticator>) {
    tenant_on(Fixture::new(name).await, users).await
}

/// Does the same as [`tenant`] on an existing fixture.
async fn tenant_on(mut fixture: Fixture, users: usize) -> (Arc<Fixture>, Arc<FixedAuthenticator>) {
    let name = fixture.name.clone();
    let authenticator = format!("{name}/$authenticator1");
    let verifier = scram_verifier(&password(&authenticator), &[3; 16]);
    fixture
        .admin
        .batch_execute(&format!(
            "CREATE ROLE \"{authenticator}\" LOGIN NOINHERIT PASSWORD '{verifier}';
             GRANT CONNECT ON DATABASE \"{name}\" TO \"{authenticator}\";
             CREATE ROLE \"{name}/all\"; GRANT USAGE ON SCHEMA public TO \"{name}/all\";
             GRANT CONNECT ON DATABASE \"{name}\" TO \"{name}/all\";
             GRANT \"{name}/alice\" TO \"{authenticator}\""
        ))
        .await
        .unwrap();
    for number in 1..=users {
        let user = format!("{name}/u{number}");
        let verifier = scram_verifier(&password(&user), &[3; 16]);
        fixture
            .admin
            .batch_execute(&format!(
                "CREATE ROLE \"{user}\" LOGIN PASSWORD '{verifier}' IN ROLE \"{name}/all\";
                 GRANT \"{user}\" TO \"{authenticator}\""
            ))
            .await
            .unwrap();
    }
    let open = Arc::new(FixedAuthenticator::default());
    fixture.users = fixture.users.clone().with_authentication(open.clone());
    (Arc::new(fixture), open)
}

fn user(fixture: &Fixture, number: usize) -> Login {
    Login {
        database: DatabaseName::new(&fixture.name),
        role: RoleName::new(format!("{}/u{number}", fixture.name)),
        role_use: RoleUse::User(number as u128),
    }
}

/// A statement whose author is Tidegate.
fn ours(text: &str) -> Sql {
    Sql::new(text).by(Author::Service)
}

const WHO: &str = "select current_user || ' ' || session_user";
/// The same as `WHO`, but the text does not name `session_user`.
const LOGIN: &str = "select current_user || ' ' || usename from pg_stat_activity \
    where pid = pg_backend_pid()";

async fn backends(fixture: &Fixture, role: &str) -> String {
    let query = format!(
        "SELECT count(*)::text FROM pg_stat_activity WHERE datname = '{}' AND usename = '{role}'",
        fixture.name
    );
    fixture.value(&query).await
}

#[tokio::test]
async fn the_author_decides_who_logs_in() {
    let (fixture, open) = tenant("shared_author", 2).await;
    let name = &fixture.name;
    let authenticator = format!("{name}/$authenticator1");
    for number in [1, 2, 1] {
        let login = user(&fixture, number);
        let shared = ours(WHO).value(&fixture, &login).await;
        assert_eq!(shared, format!("\"{} {authenticator}\"", login.role));
        let own = Sql::new(WHO).value(&fixture, &login).await;
        assert_eq!(own, format!("\"{0} {0}\"", login.role));
        let method = Sql::new(LOGIN)
            .by(Author::Owner)
            .value(&fixture, &login)
            .await;
        assert_eq!(method, shared);
        // A method that asks who logged in means its caller.
        let method = Sql::new(WHO)
            .by(Author::Owner)
            .value(&fixture, &login)
            .await;
        assert_eq!(method, own);
    }
    assert_eq!(backends(&fixture, &authenticator).await, "1");
    assert_eq!(open.invalidated(), 0);
    // The owner and the default user log in as themselves, on connections that do not run text of
    // callers.
    for login in [fixture.owner(), fixture.guest()] {
        let role = login.role.to_string();
        for sql in [ours(WHO), Sql::new(WHO)] {
            let who = sql.value(&fixture, &login).await;
            assert_eq!(who, format!("\"{role} {role}\""));
        }
        assert_eq!(backends(&fixture, &role).await, "2", "{role}");
    }
}

#[tokio::test]
async fn a_statement_is_prepared_once_for_all_users() {
    let (fixture, _) = tenant("shared_prepared", 2).await;
    let name = &fixture.name;
    fixture
        .admin
        .batch_execute(&format!(
            "CREATE TABLE notes (id int, owner text); \
             INSERT INTO notes VALUES (1, '{name}/u1'), (2, '{name}/u2'); \
             GRANT SELECT ON notes TO \"{name}/all\", \"{name}/guest\""
        ))
        .await
        .unwrap();
    let count = "select count(*) from pg_prepared_statements where statement like 'select id %'";
    for number in [1, 2, 1, 2] {
        let login = user(&fixture, number);
        let read = "select id from notes where owner = current_user";
        let read = ours(read).run(&fixture, &login).await;
        assert_eq!(read.unwrap().values, [[number.to_string()]]);
        fixture.rest().await;
        assert_eq!(ours(count).value(&fixture, &login).await, "1");
    }
    let guest = fixture.guest();
    for _ in 0..3 {
        let read = ours("select id from notes").run(&fixture, &guest).await;
        assert_eq!(read.unwrap().values.len(), 2);
        fixture.rest().await;
        assert_eq!(ours(count).value(&fixture, &guest).await, "1");
    }
}

#[tokio::test]
async fn a_transaction_keeps_the_role_until_its_end() {
    let (fixture, _) = tenant("shared_transaction", 2).await;
    let name = &fixture.name;
    fixture
        .admin
        .batch_execute(&format!(
            "CREATE TABLE log (who text DEFAULT current_user, login text DEFAULT session_user); \
             GRANT ALL ON log TO \"{name}/all\""
        ))
        .await
        .unwrap();
    for number in [1, 2, 1] {
        let login = user(&fixture, number);
        let insert = "insert into log default values returning who, login";
        let texts = [WHO, insert, WHO];
        let rows = in_transaction(&fixture, &login, Mode::ReadWrite, &texts).await;
        let rows = rows.unwrap();
        let role = &login.role;
        let who = format!("\"{role} {name}/$authenticator1\"");
        assert_eq!(rows[0].values, [[who.clone()]]);
        assert_eq!(rows[1].values[0][0], format!("\"{role}\""));
        assert_eq!(rows[2].values, [[who.clone()]]);
        let snapshot = in_transaction(&fixture, &login, Mode::Snapshot, &[WHO, WHO]).await;
        assert_eq!(snapshot.unwrap()[1].values, [[who]]);
    }
    let logins = "SELECT string_agg(DISTINCT login, ' ') FROM log";
    assert_eq!(
        fixture.value(logins).await,
        format!("{name}/$authenticator1")
    );
}

/// Makes a table with a note of each user under row level security, and one with a column that
/// only every second user may read.
async fn notes(fixture: &Fixture, users: usize) {
    let name = &fixture.name;
    fixture
        .admin
        .batch_execute(&format!(
            "CREATE TABLE notes (id int PRIMARY KEY, owner text, secret text); \
             INSERT INTO notes SELECT i, '{name}/u' || i, 's' || i \
                 FROM generate_series(1, {users}) i; \
             GRANT SELECT ON notes TO \"{name}/all\"; \
             ALTER TABLE notes ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY own ON notes USING (owner = current_user); \
             CREATE TABLE salaries (id int, amount int); \
             INSERT INTO salaries VALUES (1, 10); \
             GRANT SELECT (id) ON salaries TO \"{name}/all\""
        ))
        .await
        .unwrap();
    for number in (1..=users).step_by(2) {
        let grant = format!("GRANT SELECT (amount) ON salaries TO \"{name}/u{number}\"");
        fixture.admin.batch_execute(&grant).await.unwrap();
    }
}
