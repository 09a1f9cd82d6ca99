//! What a write leaves on a connection that callers share, and for how long.

use std::time::{Duration, Instant};

use tidegate_sql::{Author, Login};

use super::{ours, tenant, user};
use crate::stage::{Sql, Stage};

/// Whether a write is followed by a reset: the session has forgotten its sequences then.
async fn is_reset(stage: &Stage, login: &Login, write: &str) -> bool {
    let serial = ours("insert into counted default values");
    serial.run(stage, login).await.unwrap();
    if write != "insert into counted default values" {
        ours(write).run(stage, login).await.unwrap();
    }
    let last = ours("select lastval()").run(stage, login).await;
    match last {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.sqlstate(), Some("55000"), "{error}");
            true
        }
    }
}

/// Waits until it is known what the database's definitions may run.
async fn is_known(stage: &Stage, login: &Login) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_reset(stage, login, "insert into counted default values").await {
        assert!(Instant::now() < deadline, "nothing is ever known");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn tables(stage: &Stage) {
    let name = &stage.name;
    stage
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
    let (stage, _) = tenant("shared_writes", 1).await;
    tables(&stage).await;
    for login in [user(&stage, 1), stage.guest(), stage.owner()] {
        is_known(&stage, &login).await;
        for plain in [
            "update plain set a = a + 1",
            "insert into child select max(id) from plain",
            "delete from child",
        ] {
            is_known(&stage, &login).await;
            assert!(!is_reset(&stage, &login, plain).await, "{plain}");
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
            assert!(is_reset(&stage, &login, reaching).await, "{reaching}");
        }
    }
}

#[tokio::test]
async fn a_new_trigger_or_domain_counts_at_once() {
    let (stage, _) = tenant("shared_new_trigger", 1).await;
    tables(&stage).await;
    let (login, owner) = (user(&stage, 1), stage.owner());
    let grant = format!("GRANT ALL ON SCHEMA public TO \"{}\"", stage.name);
    stage.admin.batch_execute(&grant).await.unwrap();
    stage
        .admin
        .batch_execute(&format!("ALTER TABLE plain OWNER TO \"{}\"", stage.name))
        .await
        .unwrap();
    is_known(&stage, &login).await;
    let trigger = "create trigger touch before update on plain for each row \
        execute function touch()";
    Sql::new(trigger).run(&stage, &owner).await.unwrap();
    assert!(is_reset(&stage, &login, "update plain set a = a + 1").await);
    // Once the database was asked again, the trigger still counts.
    is_known(&stage, &login).await;
    assert!(is_reset(&stage, &login, "update plain set a = a + 1").await);
    let domain = "create domain own as int check (own() < value)";
    Sql::new(domain).run(&stage, &owner).await.unwrap();
    assert!(is_reset(&stage, &login, "delete from child").await);
}

/// A domain over an array has the category of arrays, which have no checks.
#[tokio::test]
async fn checks_of_domains_over_arrays_are_read() {
    let (stage, _) = tenant("shared_array_domain", 1).await;
    tables(&stage).await;
    let domain = "create domain own as int[] check (own() < cardinality(value))";
    stage.admin.batch_execute(domain).await.unwrap();
    let definitions = include_str!("../../src/suspects/definitions.sql");
    let rows = stage.admin.query(definitions, &[]).await.unwrap();
    let is_check = |text: Option<&str>| text.is_some_and(|text| text.contains("own() <"));
    assert!(rows.iter().any(|row| is_check(row.get(3))));
}

/// What plain writes leave is not asked for on a connection that users share.
#[tokio::test]
async fn an_owners_method_that_asks_for_the_last_number_keeps_its_login() {
    let (stage, _) = tenant("shared_lastval", 2).await;
    tables(&stage).await;
    let guest = stage.guest();
    is_known(&stage, &guest).await;
    let method = Sql::new("select lastval()").by(Author::Owner);
    assert_eq!(method.refusal(&stage, &guest).await, "55000");
}
