//! Side effects of writes on shared connections.

use std::time::{Duration, Instant};

use tidegate_sql::{Author, Login};

use super::{ours, tenant, user};
use crate::fixture::{Fixture, Sql};

/// Whether a write is followed by a reset, which clears the session's sequence values.
async fn is_reset(fixture: &Fixture, login: &Login, write: &str) -> bool {
    let serial = ours("insert into counted default values");
    serial.run(fixture, login).await.unwrap();
    if write != "insert into counted default values" {
        ours(write).run(fixture, login).await.unwrap();
    }
    let last = ours("select lastval()").run(fixture, login).await;
    match last {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.sqlstate(), Some("55000"), "{error}");
            true
        }
    }
}

/// Waits until the untrusted names have been read.
async fn is_known(fixture: &Fixture, login: &Login) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_reset(fixture, login, "insert into counted default values").await {
        assert!(Instant::now() < deadline, "nothing is ever known");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn tables(fixture: &Fixture) {
    let name = &fixture.name;
    fixture
        .admin
        .batch_execute(&format!(
            "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
             CREATE FUNCTION own() RETURNS int LANGUAGE sql AS 'SELECT 1';
             CREATE DOMAIN positive AS int DEFAULT 1 CHECK (VALUE > 0);
             CREATE TABLE counted (id serial);
             CREATE TABLE plain (id serial PRIMARY KEY, a positive CHECK (a > 0),
                 at timestamptz DEFAULT now(), b int GENERATED ALWAYS AS (a * 2) STORED);
             CREATE TABLE child (id int REFERENCES plain ON DELETE RESTRICT);
             CREATE TABLE triggered (a int);
             CREATE TRIGGER touch BEFORE INSERT ON triggered
                 FOR EACH ROW EXECUTE FUNCTION touch();
             CREATE TABLE defaulted (a int, b int DEFAULT own());
             CREATE TABLE checked (a int CHECK (a > own() - 10));
             CREATE TABLE ruled (a int);
             CREATE RULE also AS ON INSERT TO ruled DO ALSO INSERT INTO triggered VALUES (NEW.a);
             CREATE VIEW over AS SELECT a FROM triggered;
             CREATE VIEW settings AS SELECT * FROM pg_settings;
             CREATE VIEW settings_over AS SELECT name, setting FROM settings;
             CREATE TABLE conditioned (a int);
             CREATE TRIGGER touch BEFORE UPDATE ON conditioned FOR EACH ROW
                 WHEN (own() > 1) EXECUTE FUNCTION suppress_redundant_updates_trigger();
             CREATE TABLE parent (id int PRIMARY KEY);
             CREATE TABLE below (id int REFERENCES parent ON DELETE CASCADE);
             CREATE TRIGGER touch BEFORE DELETE ON below
                 FOR EACH ROW EXECUTE FUNCTION touch();
             CREATE TABLE parted (a int) PARTITION BY RANGE (a);
             CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10);
             CREATE TRIGGER touch BEFORE INSERT ON part
                 FOR EACH ROW EXECUTE FUNCTION touch();
             GRANT ALL ON ALL TABLES IN SCHEMA public TO \"{name}/all\", \"{name}/guest\",
                 \"{name}\";
             GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO \"{name}/all\", \"{name}/guest\",
                 \"{name}\";"
        ))
        .await
        .unwrap();
}

#[tokio::test]
async fn only_writes_that_reach_code_of_the_database_are_reset() {
    let (fixture, _) = tenant("shared_writes", 1).await;
    tables(&fixture).await;
    for login in [user(&fixture, 1), fixture.guest(), fixture.owner()] {
        is_known(&fixture, &login).await;
        for plain in [
            "update plain set a = a + 1",
            "insert into child select max(id) from plain",
            "delete from child",
        ] {
            is_known(&fixture, &login).await;
            assert!(!is_reset(&fixture, &login, plain).await, "{plain}");
        }
        for reaching in [
            "insert into triggered values (1)",
            "insert into defaulted values (1)",
            "insert into checked values (1)",
            "insert into ruled values (1)",
            "insert into over values (1)",
            "update settings_over set setting = '0' where name = 'lock_timeout'",
            "update conditioned set a = 1",
            "delete from parent",
            "insert into parted values (1)",
            "insert into part values (1)",
        ] {
            assert!(is_reset(&fixture, &login, reaching).await, "{reaching}");
        }
    }
}

#[tokio::test]
async fn a_new_trigger_or_domain_counts_at_once() {
    let (fixture, _) = tenant("shared_new_trigger", 1).await;
    tables(&fixture).await;
    let (login, owner) = (user(&fixture, 1), fixture.owner());
    let grant = format!("GRANT ALL ON SCHEMA public TO \"{}\"", fixture.name);
    fixture.admin.batch_execute(&grant).await.unwrap();
    fixture
        .admin
        .batch_execute(&format!("ALTER TABLE plain OWNER TO \"{}\"", fixture.name))
        .await
        .unwrap();
    is_known(&fixture, &login).await;
    let trigger = "create trigger touch before update on plain for each row \
        execute function touch()";
    Sql::new(trigger).run(&fixture, &owner).await.unwrap();
    assert!(is_reset(&fixture, &login, "update plain set a = a + 1").await);
    // The trigger is still untrusted after the names have been read again.
    is_known(&fixture, &login).await;
    assert!(is_reset(&fixture, &login, "update plain set a = a + 1").await);
    let domain = "create domain own as int check (own() < value)";
    Sql::new(domain).run(&fixture, &owner).await.unwrap();
    assert!(is_reset(&fixture, &login, "delete from child").await);
}

/// A domain over an array is in the type category of arrays, which have no checks themselves.
#[tokio::test]
async fn checks_of_domains_over_arrays_are_read() {
    let (fixture, _) = tenant("shared_array_domain", 1).await;
    tables(&fixture).await;
    let domain = "create domain own as int[] check (own() < cardinality(value))";
    fixture.admin.batch_execute(domain).await.unwrap();
    let definitions = include_str!("../../src/purity/definitions.sql");
    let rows = fixture.admin.query(definitions, &[]).await.unwrap();
    let is_check = |text: Option<&str>| text.is_some_and(|text| text.contains("own() <"));
    assert!(rows.iter().any(|row| is_check(row.get(3))));
}

/// A shared connection does not show which sequence values plain writes left.
#[tokio::test]
async fn an_owners_method_that_asks_for_the_last_number_keeps_its_login() {
    let (fixture, _) = tenant("shared_lastval", 2).await;
    tables(&fixture).await;
    let guest = fixture.guest();
    is_known(&fixture, &guest).await;
    let method = Sql::new("select lastval()").by(Author::Owner);
    assert_eq!(method.refusal(&fixture, &guest).await, "55000");
}
