//! Tests that a refreshed schema equals one that is loaded without a cache.

use std::fmt::Write as _;
use std::sync::Arc;

use tidegate_catalog::{CatalogCache, Schema};
use tidegate_sql::{Login, QueryOptions};
use tidegate_testkit::Random;

use crate::fixture::Fixture;

/// The whole content of a schema as text.
fn text(schema: Option<&Schema>) -> String {
    let Some(schema) = schema else {
        return String::new();
    };
    let mut text = format!("{} {:?}\n", schema.name(), schema.renamed());
    for (_, relation) in schema.relations() {
        writeln!(text, "{relation:#?}").unwrap();
    }
    text
}

/// Fails with the first line that differs, because the whole text is long.
fn assert_same(kept: &str, new: &str, context: &str) {
    let mut relation = "";
    for (kept, new) in kept.lines().zip(new.lines()) {
        if new.starts_with("    name: ") {
            relation = new;
        }
        assert_eq!(kept, new, "{relation} {context}");
    }
    assert_eq!(kept.len(), new.len(), "{context}");
}

/// A cache that was refreshed after every step, for comparison with an empty one.
struct Compared {
    fixture: Fixture,
    logins: Vec<Login>,
}

impl Compared {
    async fn new(database: &str, roles: &[&str], sql: &str) -> Self {
        let fixture = Fixture::new(database, sql).await;
        let mut logins: Vec<_> = roles.iter().map(|role| fixture.login(role)).collect();
        logins.push(fixture.owner());
        let compared = Self { fixture, logins };
        compared.check("the beginning").await;
        compared
    }

    async fn step(&self, sql: &str) {
        self.fixture.run(sql).await;
        self.fixture.definitions.define();
        self.check(sql).await;
    }

    async fn check(&self, after: &str) {
        let fixture = &self.fixture;
        let fresh = CatalogCache::new(fixture.control.clone(), fixture.definitions.clone());
        let options = QueryOptions::default();
        for login in &self.logins {
            let kept = fixture.catalogs.schema(login, "public", &options).await;
            let new = fresh.schema(login, "public", &options).await;
            let (kept, new) = (kept.unwrap(), new.unwrap());
            let context = format!("as {} after: {after}", login.role);
            assert_same(&text(kept.as_deref()), &text(new.as_deref()), &context);
            let kept = fixture.catalogs.schemas(login, &options).await.unwrap();
            let new = fresh.schemas(login, &options).await.unwrap();
            let all = |schemas: &[Arc<Schema>]| -> String {
                schemas.iter().map(|schema| text(Some(schema))).collect()
            };
            assert_same(&all(&kept), &all(&new), &context);
        }
    }
}

/// Definitions of every kind. Their order is such that each affects something that was loaded
/// before.
const STEPS: &[&str] = &[
    "create table c (id int primary key, a_id int references a, b_id int references b)",
    "grant all on c to {r}",
    // Two relations that keys reference swap their names in one transaction.
    "alter table a rename to between; alter table b rename to a; alter table between rename to b",
    "alter table a rename to between; alter table b rename to a; alter table between rename to b",
    "alter table a rename to renamed",
    "alter table renamed rename column id to number",
    "alter table renamed rename to a",
    "alter table a add column more text default 'x'",
    "alter table a alter column more set not null",
    "alter table a alter column more type varchar(7)",
    "alter table a alter column more drop default",
    "comment on table a is 'about a'",
    "comment on column a.more is 'about more'",
    "comment on column a.more is null",
    "grant select (more) on a to {r}",
    "revoke select (more) on a from {r}",
    "revoke all on a from {r}",
    "grant update (more), insert (number) on a to {r}",
    "grant select on a to {g}",
    "grant {g} to {r}",
    "revoke {g} from {r}",
    "alter type mood add value 'odd'",
    "alter type mood rename value 'odd' to 'even'",
    "alter type mood rename to feeling",
    "alter domain price set not null",
    "alter domain price drop not null",
    "alter domain price set default 3",
    "create type pair as (x int, m feeling); alter table b add column p pair",
    "alter type pair add attribute y text",
    "alter type pair rename attribute y to z",
    "alter type pair drop attribute z",
    "alter type feeling set schema other",
    "alter type other.feeling set schema public",
    "create type span as range (subtype = float8); alter table b add column s span",
    "alter table b add column list feeling[]",
    "alter table b add constraint b_two unique (number, p)",
    "alter table b drop constraint b_two",
    "alter table b add constraint positive check (number > 0) not valid",
    "create view v as select number, price from b; grant all on v to {r}",
    "create view w as select number, price from v; grant all on w to {r}",
    "create or replace view v as select number, (price + 1)::price as price from b",
    "create or replace view v as select number, price from b limit 3",
    "create or replace view v as select number, price from b",
    "create rule no_update as on update to v do instead nothing",
    "drop rule no_update on v",
    "create function nothing() returns trigger language plpgsql as 'begin return new; end'",
    "create trigger t instead of insert on v for each row execute function nothing()",
    "drop trigger t on v",
    "alter view v rename column number to n",
    "create materialized view m as select 1 as one; grant select on m to {r}",
    "alter table b enable row level security",
    "create policy p on b using (number > 0)",
    "alter policy p on b using (number > (select 1))",
    "alter table b force row level security",
    "alter role {r} bypassrls",
    "alter role {r} nobypassrls",
    "alter table b owner to {r}",
    "alter table b owner to current_user",
    "drop policy p on b",
    "create table part (id int not null, at date not null) partition by range (at); grant all on part to {r}",
    "create table part_1 partition of part for values from ('2020-01-01') to ('2021-01-01')",
    "alter table part add primary key (id, at)",
    "create table points (id int, at date, foreign key (id, at) references part)",
    "alter table part rename column at to day",
    "alter table part detach partition part_1",
    "alter table other.far rename column id to number",
    "alter table other.far rename to farther",
    "alter schema other rename to another",
    "alter table another.farther set schema public",
    "grant all on farther to {r}",
    "alter table alone set unlogged",
    "alter table c drop constraint c_a_id_fkey",
    "alter table c add constraint a_again foreign key (a_id) references a not valid",
    "alter table c validate constraint a_again",
    "alter table c rename constraint a_again to a_once_more",
    "drop table c; create table c (id int)",
    "create table aggregate (a int); create table \"A\" (b int)",
    "alter table b drop column list",
    "alter role {r} superuser",
    "alter role {r} nosuperuser",
    "revoke usage on schema public from public",
    "grant usage on schema public to {r}",
    "drop view w; drop view v",
    "drop table a cascade",
    "drop owned by {r}",
    "drop schema public cascade",
    "create schema public; create table back (id int); grant usage on schema public to {r}; grant all on back to {r}",
];

const BEGIN: &str = "create role {r}; create role {g}; create schema other; \
    create type mood as enum ('low', 'high'); create domain price as numeric(8, 2); \
    create table other.far (id int primary key); \
    create table a (id int primary key, m mood, price price, far_id int references other.far); \
    create table b (number int primary key, a_id int references a, price price); \
    create table alone (id int, name text); \
    grant all on a, b to {r}; grant select on alone to {r}; grant usage on schema other to {r}";

fn named(sql: &str, name: &str) -> String {
    sql.replace("{r}", &format!("{name}_reader"))
        .replace("{g}", &format!("{name}_group"))
}

async fn compared(name: &str) -> Compared {
    let roles = [format!("{name}_reader"), format!("{name}_group")];
    Compared::new(name, &[&roles[0], &roles[1]], &named(BEGIN, name)).await
}

#[tokio::test]
async fn every_kind_of_definition_is_loaded_as_from_nothing() {
    let compared = compared("incremental_each").await;
    for step in STEPS {
        compared.step(&named(step, "incremental_each")).await;
    }
}

/// The definitions run in a random order. Those that PostgreSQL rejects have no effect.
#[tokio::test]
async fn random_definitions_are_loaded_as_from_nothing() {
    let compared = compared("incremental_random").await;
    let mut random = Random::new(16);
    let (mut done, mut refused) = (0, 0);
    while done < 60 {
        let mut batch = String::new();
        for _ in 0..=random.below(3) {
            // The last three steps are left out, because they drop the schema.
            let step = STEPS[random.below(STEPS.len() - 3)];
            write!(batch, "{};", named(step, "incremental_random")).unwrap();
        }
        match compared.fixture.client.batch_execute(&batch).await {
            Ok(()) => done += 1,
            Err(_) => refused += 1,
        }
        assert!(
            refused < 2_000,
            "only {done} of the definitions were possible"
        );
        compared.fixture.definitions.define();
        compared.check(&batch).await;
    }
}

/// A relation that did not change must be the same value, and must not be sent again.
#[tokio::test]
async fn relations_that_did_not_change_are_shared() {
    let compared = compared("incremental_shared").await;
    let fixture = &compared.fixture;
    let before = fixture.public().await;
    compared.step("alter table alone add column more int").await;
    let after = fixture.public().await;
    let columns = |schema: &Schema, name: &str| {
        let relation = &schema[schema.find(name).unwrap()];
        Arc::clone(&relation.columns)
    };
    for name in ["a", "b"] {
        let same = Arc::ptr_eq(&columns(&before, name), &columns(&after, name));
        assert!(same, "{name}");
    }
    assert_eq!(
        columns(&before, "alone").len() + 1,
        columns(&after, "alone").len()
    );
}
