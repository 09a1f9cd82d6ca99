//! Several statements in one write and one transaction.

mod differential;
mod failures;
mod load;
mod proxy;
mod unknown;

use std::time::{Duration, Instant};

use tidegate_pool::Settings;
use tidegate_sql::{
    Author, BoundStatement, Commit, Completion, Error, Flow, Login, Mode, Pipeline, PipelineError,
    PipelineStep, QueryOptions, RowSink,
};
use tidegate_values::{Column, RawRow};
use tidegate_wire::{Config, TlsMode};

use crate::fixture::{CollectedRows, Fixture, Rows, Sql};
use proxy::Log;

/// A builder of pipelines.
pub(crate) struct Plan {
    mode: Mode,
    commit: Commit,
    pub(crate) options: QueryOptions,
    statements: Vec<BoundStatement>,
}

impl Plan {
    pub(crate) fn new(statements: impl IntoIterator<Item = Sql>) -> Self {
        let statements = statements.into_iter().map(|sql| {
            let mut bound = sql.bound;
            if bound.sets.is_empty() && bound.statement.placeholders().is_empty() {
                bound.sets.push(Vec::new());
            }
            bound
        });
        Self {
            mode: Mode::ReadWrite,
            commit: Commit::AfterRows,
            options: QueryOptions::default(),
            statements: statements.collect(),
        }
    }

    pub(crate) fn snapshot(mut self) -> Self {
        self.mode = Mode::Snapshot;
        self
    }

    pub(crate) fn together(mut self) -> Self {
        self.commit = Commit::Together;
        self
    }

    /// Marks the text as written by Tidegate, so that its calls are trusted.
    pub(crate) fn ours(mut self) -> Self {
        self.options.author = Author::Service;
        self
    }

    fn pipeline<'a, S: RowSink>(&'a self, sinks: &'a mut [S]) -> Pipeline<'a> {
        let steps = self.statements.iter().zip(sinks);
        Pipeline {
            mode: self.mode,
            steps: steps
                .map(|(statement, sink)| PipelineStep { statement, sink })
                .collect(),
            commit: self.commit,
        }
    }

    pub(crate) async fn run(
        &self,
        fixture: &Fixture,
        login: &Login,
    ) -> Result<Vec<Rows>, PipelineError> {
        let mut sinks = self.sinks();
        let pipeline = self.pipeline(&mut sinks);
        let completions = fixture
            .users
            .pipeline(login, pipeline, &self.options)
            .await?;
        Ok(gathered(sinks, &completions))
    }

    /// Runs the statements one after the other.
    async fn run_in_turn(
        &self,
        fixture: &Fixture,
        login: &Login,
    ) -> Result<Vec<Rows>, PipelineError> {
        let mut sinks = self.sinks();
        let transaction = fixture.users.begin(login, self.mode, &self.options).await?;
        let completions = self.pipeline(&mut sinks).run_in(transaction).await?;
        Ok(gathered(sinks, &completions))
    }

    /// Runs the plan with sinks that refuse the row after the given number of rows.
    async fn run_with(
        &self,
        limits: &[usize],
        fixture: &Fixture,
        login: &Login,
    ) -> Result<Vec<Completion>, PipelineError> {
        let mut sinks: Vec<_> = limits.iter().map(|limit| Refusing(*limit)).collect();
        let pipeline = self.pipeline(&mut sinks);
        fixture.users.pipeline(login, pipeline, &self.options).await
    }

    fn sinks(&self) -> Vec<CollectedRows> {
        let sinks = self.statements.iter();
        sinks.map(|_| CollectedRows::default()).collect()
    }
}

fn gathered(sinks: Vec<CollectedRows>, completions: &[Completion]) -> Vec<Rows> {
    assert_eq!(sinks.len(), completions.len());
    let sinks = sinks.into_iter().zip(completions);
    sinks.map(|(sink, done)| sink.rows(*done)).collect()
}

/// A sink that accepts this many rows.
struct Refusing(usize);

impl RowSink for Refusing {
    fn columns(&mut self, _: &[Column]) -> Result<(), Error> {
        Ok(())
    }

    fn row(&mut self, _: RawRow<'_>) -> Result<Flow, Error> {
        self.0 = self.0.checked_sub(1).ok_or(Error::ResultTooLarge(1))?;
        Ok(Flow::Continue)
    }
}

/// A fixture with a table of 100 rows, and one for writes.
async fn fixture(name: &str) -> Fixture {
    furnished(Fixture::new(name).await).await
}

async fn furnished(fixture: Fixture) -> Fixture {
    let setup = "create table item as select g as id, 'item ' || g as name
            from generate_series(1, 100) g;
        alter table item add primary key (id);
        create table note (id int primary key, text text);
        grant all on item, note to public";
    let owner = fixture.owner();
    for statement in setup.split(';') {
        Sql::new(statement).run(&fixture, &owner).await.unwrap();
    }
    fixture
}

pub(crate) fn by_key(id: u32) -> Sql {
    Sql::new("select name from item where id = :id").set([&id.to_string()])
}

pub(crate) fn write(id: u32) -> Sql {
    Sql::new("insert into note values (:id, 'x')").set([&id.to_string()])
}

pub(crate) fn write_returning(id: u32) -> Sql {
    Sql::new("insert into note values (:id, 'x') returning id").set([&id.to_string()])
}

async fn notes(fixture: &Fixture) -> String {
    fixture.value("select count(*)::text from note").await
}

/// A fixture behind a proxy that records messages.
pub(crate) async fn watched(name: &str) -> (Fixture, Log) {
    let cluster = tidegate_embedded::testing::cluster();
    let url = cluster.url("postgres");
    let place = url.rsplit('@').next().unwrap();
    let port = place.split(':').nth(1).unwrap();
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    let (own, log) = proxy::start(port.parse().unwrap()).await;
    let config = Config::from_url(&url.replace(&format!(":{port}/"), &format!(":{own}/")));
    let config = config.unwrap().with_tls(TlsMode::Disable, None);
    let fixture = Fixture::at(cluster, name, Settings::default(), config).await;
    (furnished(fixture).await, log)
}

/// The messages that a plan sends once its statements are cached.
async fn sent(plan: &Plan, fixture: &Fixture, login: &Login, log: &Log) -> String {
    let owner = fixture.owner();
    plan.run(fixture, login).await.unwrap();
    Sql::new("delete from note")
        .run(fixture, &owner)
        .await
        .unwrap();
    fixture.rest().await;
    log.take();
    plan.run(fixture, login).await.unwrap();
    fixture.rest().await;
    let sent = log.take();
    Sql::new("delete from note")
        .run(fixture, &owner)
        .await
        .unwrap();
    sent
}

/// Checks the messages that a plan sends once its statements are cached and the untrusted names are
/// known. Until then, reads are followed by a reset.
pub(crate) async fn assert_sent(
    plan: &Plan,
    (fixture, log): (&Fixture, &Log),
    login: &Login,
    expected: &str,
) {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut found = sent(plan, fixture, login, log).await;
    while found != expected && Instant::now() < deadline {
        found = sent(plan, fixture, login, log).await;
    }
    let texts = plan.statements.iter().map(|bound| bound.statement.text());
    let texts: Vec<_> = texts.collect();
    let (role, mode, commit) = (&login.role, plan.mode, plan.commit);
    assert_eq!(found, expected, "{role} {mode:?} {commit:?} {texts:?}");
}

#[tokio::test]
async fn what_is_known_leaves_in_one_write() {
    let (fixture, log) = watched("pipeline_sent").await;
    // The messages of a reset: the settings, and the check for prepared statements and locks.
    let reset = "QBES";
    let reads = || [by_key(1), by_key(2), by_key(3)];
    let writes = || [write(1), write(2)];
    let returning = || [write_returning(1), write_returning(2)];
    let cases = [
        (Plan::new(reads()), "BEBEBES".to_owned()),
        (Plan::new(reads()).snapshot(), "BEBEBEBEBES".to_owned()),
        (Plan::new(writes()), format!("BEBES{reset}")),
        (Plan::new(returning()), format!("BEBEH|S{reset}")),
        (Plan::new(returning()).together(), format!("BEBES{reset}")),
        (
            Plan::new([write_returning(1)]).together(),
            format!("BES{reset}"),
        ),
        (
            Plan::new([write(1), by_key(1), write(2)]),
            format!("BEBEBEH|S{reset}"),
        ),
    ];
    let owner = fixture.owner();
    for (plan, expected) in cases {
        assert_sent(&plan, (&fixture, &log), &owner, &expected).await;
    }
}

#[tokio::test]
async fn rows_reach_the_sink_of_their_statement() {
    let fixture = fixture("pipeline_rows").await;
    let several = Sql::new("select id from item where id = :id")
        .set(["4"])
        .set(["5"]);
    for login in [fixture.owner(), fixture.alice(), fixture.guest()] {
        for mode in [Mode::ReadWrite, Mode::Snapshot] {
            let mut plan = Plan::new([by_key(7), several.clone(), by_key(777), by_key(9)]);
            plan.mode = mode;
            for _ in 0..3 {
                let rows = plan.run(&fixture, &login).await.unwrap();
                let values: Vec<_> = rows.into_iter().map(|rows| rows.values.concat()).collect();
                let expected: [&[&str]; 4] = [&[r#""item 7""#], &["4", "5"], &[], &[r#""item 9""#]];
                assert_eq!(values, expected, "{login:?} {mode:?}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_written_is_counted_and_kept() {
    let fixture = fixture("pipeline_writes").await;
    let owner = fixture.owner();
    let set = Sql::new("insert into note values (:id, 'y')")
        .set(["8"])
        .set(["9"]);
    let count = Sql::new("select count(*) from note");
    let plan = Plan::new([write(1), set, count, Sql::new("update note set text = 'z'")]);
    let rows = plan.run(&fixture, &owner).await.unwrap();
    let affected: Vec<_> = rows.iter().map(|rows| rows.affected).collect();
    assert_eq!(affected, [Some(1), Some(2), None, Some(3)]);
    assert_eq!(rows[2].values, [["3"]]);
    assert_eq!(notes(&fixture).await, "3");
}

#[tokio::test]
async fn a_snapshot_stays_what_it_was_and_is_read_only() {
    let fixture = fixture("pipeline_snapshot").await;
    let owner = fixture.owner();
    let setup = "create function clock() returns xid8 volatile language sql
            as 'select pg_snapshot_xmax(pg_current_snapshot())'";
    Sql::new(setup).run(&fixture, &owner).await.unwrap();
    let plan = Plan::new([
        Sql::new("select pg_current_snapshot()::text"),
        Sql::new("select pg_sleep(0.05)"),
        Sql::new("select pg_current_snapshot()::text"),
    ]);
    let plan = plan.snapshot().ours();
    let beside = async {
        for id in 0..20 {
            write(id).run(&fixture, &owner).await.unwrap();
        }
    };
    let (rows, ()) = tokio::join!(plan.run(&fixture, &owner), beside);
    let rows = rows.unwrap();
    assert_eq!(rows[0].values, rows[2].values);
    let plan = Plan::new([by_key(1), write(100)]).snapshot();
    let error = plan.run(&fixture, &owner).await.unwrap_err();
    assert_eq!(
        (error.step, error.error.sqlstate()),
        (Some(1), Some("25006"))
    );
}

#[tokio::test]
async fn hundreds_of_statements_with_long_results_do_not_block_either_side() {
    let fixture = fixture("pipeline_long").await;
    let long = |n: u32| {
        let text = "select :n::int, repeat('x', 20000)";
        let mut sql = Sql::new(text).set([&n.to_string()]);
        for _ in 0..20 {
            sql = sql.set([&n.to_string()]);
        }
        sql
    };
    let plan = Plan::new((0..400).map(long));
    let rows = plan.run(&fixture, &fixture.owner()).await.unwrap();
    for (n, rows) in rows.iter().enumerate() {
        assert_eq!(rows.values.len(), 21);
        assert_eq!(rows.values[20][0], n.to_string());
    }
}

#[tokio::test]
async fn more_statements_than_are_kept_prepared_run_all_the_same() {
    let fixture = fixture("pipeline_many").await;
    let owner = fixture.owner();
    let text = |n: u32| Sql::new(&format!("select {n} + :a::int")).set(["1"]);
    let plan = Plan::new((0..600).map(text));
    for _ in 0..2 {
        let rows = plan.run(&fixture, &owner).await.unwrap();
        let values = rows.iter().map(|rows| rows.values[0][0].clone());
        let expected = (0..600).map(|n| (n + 1).to_string());
        assert!(values.eq(expected));
    }
}

#[tokio::test]
async fn what_may_change_names_or_end_the_transaction_runs_in_turn() {
    let fixture = fixture("pipeline_in_turn").await;
    let owner = fixture.owner();
    let path = Sql::new("select set_config('search_path', 'pg_catalog', true)");
    let plan = Plan::new([path, Sql::new("select current_schema()")]);
    let rows = plan.run(&fixture, &owner).await.unwrap();
    assert_eq!(rows[1].values, [[r#""pg_catalog""#]]);
    // After this change the name refers to another table with other columns.
    let other = "create schema other; create table other.item (other int);
        insert into other.item values (7); grant usage on schema other to public;
        grant select on other.item to public";
    fixture.admin.batch_execute(other).await.unwrap();
    let items = || Sql::new("select * from item limit 1");
    items().run(&fixture, &owner).await.unwrap();
    let path = Sql::new("select set_config('search_path', 'other', true)");
    let rows = Plan::new([path, items()])
        .run(&fixture, &owner)
        .await
        .unwrap();
    assert_eq!(rows[1].values, [["7"]]);
    let plan = Plan::new([
        Sql::new("create table made (a int)"),
        Sql::new("insert into made values (1)"),
        Sql::new("select a from made"),
    ]);
    let rows = plan.run(&fixture, &owner).await.unwrap();
    assert_eq!(rows[2].values, [["1"]]);
    let block = Sql::new("do $$ begin insert into note values (1); commit; end $$");
    let plan = Plan::new([block, write(1)]);
    let error = plan.run(&fixture, &owner).await.unwrap_err();
    assert_eq!(
        (error.step, error.error.sqlstate()),
        (Some(0), Some("2D000"))
    );
    assert_eq!(notes(&fixture).await, "0");
}
