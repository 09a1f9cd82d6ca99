//! Connections that the users of a tenant share.

mod attacks;
mod faults;
mod functions;
mod interleaved;
mod many;
mod outage;
mod pipelines;
mod role_plans;
mod writes;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tidegate_postgres::{Authentication, scram_verifier};
use tidegate_sql::{
    Author, BoxFuture, DatabaseName, Login, Mode, QueryOptions, Result, RoleName, RoleUse,
};

use crate::stage::{Gathered, Rows, Sql, Stage, password};

/// Allows every user the one authenticator of a database until it is closed.
#[derive(Default)]
pub(crate) struct Open {
    closed: AtomicBool,
    distrusted: AtomicUsize,
}

impl Open {
    fn distrusted(&self) -> usize {
        self.distrusted.load(Ordering::SeqCst)
    }
}

impl Authentication for Open {
    fn of<'a>(
        &'a self,
        database: &'a DatabaseName,
        _: &'a RoleName,
    ) -> BoxFuture<'a, Option<RoleName>> {
        let open = !self.closed.load(Ordering::SeqCst);
        let role = open.then(|| RoleName::new(format!("{database}/$authenticator1")));
        Box::pin(std::future::ready(role))
    }

    fn distrust(&self, _: &DatabaseName) {
        self.distrusted.fetch_add(1, Ordering::SeqCst);
    }

    fn forget(&self, _: &DatabaseName) {}

    fn refresh(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn switch(&self) -> &'static str {
        "SELECT pg_catalog.set_config('role', $1, true)"
    }
}

/// A stage whose users `<name>/u1` and so on share an authenticator.
async fn tenant(name: &str, users: usize) -> (Arc<Stage>, Arc<Open>) {
    tenant_on(Stage::new(name).await, users).await
}

/// The same on a stage that is there.
async fn tenant_on(mut stage: Stage, users: usize) -> (Arc<Stage>, Arc<Open>) {
    let name = stage.name.clone();
    let authenticator = format!("{name}/$authenticator1");
    let verifier = scram_verifier(&password(&authenticator), &[3; 16]);
    stage
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
        stage
            .admin
            .batch_execute(&format!(
                "CREATE ROLE \"{user}\" LOGIN PASSWORD '{verifier}' IN ROLE \"{name}/all\";
                 GRANT \"{user}\" TO \"{authenticator}\""
            ))
            .await
            .unwrap();
    }
    let open = Arc::new(Open::default());
    stage.roles = stage.roles.clone().with_authentication(open.clone());
    (Arc::new(stage), open)
}

fn user(stage: &Stage, number: usize) -> Login {
    Login {
        database: DatabaseName::new(&stage.name),
        role: RoleName::new(format!("{}/u{number}", stage.name)),
        role_use: RoleUse::User(number as u128),
    }
}

/// A statement of Tidegate's.
fn ours(text: &str) -> Sql {
    Sql::new(text).by(Author::Service)
}

const WHO: &str = "select current_user || ' ' || session_user";

async fn backends(stage: &Stage, role: &str) -> String {
    let query = format!(
        "SELECT count(*)::text FROM pg_stat_activity WHERE datname = '{}' AND usename = '{role}'",
        stage.name
    );
    stage.value(&query).await
}

#[tokio::test]
async fn the_author_decides_who_logs_in() {
    let (stage, open) = tenant("shared_author", 2).await;
    let name = &stage.name;
    let authenticator = format!("{name}/$authenticator1");
    for number in [1, 2, 1] {
        let login = user(&stage, number);
        let shared = ours(WHO).value(&stage, &login).await;
        assert_eq!(shared, format!("\"{} {authenticator}\"", login.role));
        let own = Sql::new(WHO).value(&stage, &login).await;
        assert_eq!(own, format!("\"{0} {0}\"", login.role));
        let method = Sql::new(WHO).by(Author::Owner).value(&stage, &login).await;
        assert_eq!(method, shared);
    }
    assert_eq!(backends(&stage, &authenticator).await, "1");
    assert_eq!(open.distrusted(), 0);
    // The owner and the default user log in as themselves, apart from their callers' texts.
    for login in [stage.owner(), stage.guest()] {
        let role = login.role.to_string();
        for sql in [ours(WHO), Sql::new(WHO)] {
            let who = sql.value(&stage, &login).await;
            assert_eq!(who, format!("\"{role} {role}\""));
        }
        assert_eq!(backends(&stage, &role).await, "2", "{role}");
    }
}

#[tokio::test]
async fn statements_that_are_no_plain_read_or_write_keep_their_login() {
    let (stage, _) = tenant("shared_statement_kinds", 1).await;
    let login = user(&stage, 1);
    let method = Sql::new("select set_config(:a, :b, false) || session_user")
        .by(Author::Owner)
        .set(["\"role\"", "\"none\""]);
    let value = method.value(&stage, &login).await;
    assert!(value.ends_with(&format!("{}\"", login.role)), "{value}");
    let temporary = ours("create temp table t as select session_user::text as who");
    assert_eq!(temporary.refusal(&stage, &login).await, "42501");
}

#[tokio::test]
async fn a_statement_is_prepared_once_for_all_users() {
    let (stage, _) = tenant("shared_prepared", 2).await;
    let name = &stage.name;
    stage
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
        let login = user(&stage, number);
        let read = "select id from notes where owner = current_user";
        let read = ours(read).run(&stage, &login).await;
        assert_eq!(read.unwrap().values, [[number.to_string()]]);
        stage.rest().await;
        assert_eq!(ours(count).value(&stage, &login).await, "1");
    }
    let guest = stage.guest();
    for _ in 0..3 {
        let read = ours("select id from notes").run(&stage, &guest).await;
        assert_eq!(read.unwrap().values.len(), 2);
        stage.rest().await;
        assert_eq!(ours(count).value(&stage, &guest).await, "1");
    }
}

async fn in_transaction(
    stage: &Stage,
    login: &Login,
    mode: Mode,
    texts: &[&str],
) -> Result<Vec<Rows>> {
    let options = QueryOptions {
        author: Author::Service,
        ..QueryOptions::default()
    };
    let mut transaction = stage.roles.begin(login, mode, &options).await?;
    let mut all = Vec::new();
    for text in texts {
        let mut bound = Sql::new(text).bound;
        bound.sets.push(Vec::new());
        let mut gathered = Gathered::default();
        let completion = transaction.query(&bound, &mut gathered).await?;
        all.push(gathered.rows(completion));
    }
    transaction.commit().await?;
    Ok(all)
}

#[tokio::test]
async fn a_transaction_keeps_the_role_until_its_end() {
    let (stage, _) = tenant("shared_transaction", 2).await;
    let name = &stage.name;
    stage
        .admin
        .batch_execute(&format!(
            "CREATE TABLE log (who text DEFAULT current_user, login text DEFAULT session_user); \
             GRANT ALL ON log TO \"{name}/all\""
        ))
        .await
        .unwrap();
    for number in [1, 2, 1] {
        let login = user(&stage, number);
        let insert = "insert into log default values returning who, login";
        let texts = [WHO, insert, WHO];
        let rows = in_transaction(&stage, &login, Mode::ReadWrite, &texts).await;
        let rows = rows.unwrap();
        let role = &login.role;
        let who = format!("\"{role} {name}/$authenticator1\"");
        assert_eq!(rows[0].values, [[who.clone()]]);
        assert_eq!(rows[1].values[0][0], format!("\"{role}\""));
        assert_eq!(rows[2].values, [[who.clone()]]);
        let snapshot = in_transaction(&stage, &login, Mode::Snapshot, &[WHO, WHO]).await;
        assert_eq!(snapshot.unwrap()[1].values, [[who]]);
    }
    let logins = "SELECT string_agg(DISTINCT login, ' ') FROM log";
    assert_eq!(stage.value(logins).await, format!("{name}/$authenticator1"));
}
