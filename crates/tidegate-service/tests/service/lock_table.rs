//! A full lock table.

use tidegate_embedded::{Cluster, testing};
use tidegate_testkit::{config, connect, soon};
use tidegate_wire::Secret;
use tokio_postgres::Client;

use super::TestDatabase;

/// Takes all room in the lock table and keeps it in an open transaction.
const FILL: &str = "BEGIN; DO $$ BEGIN
    FOR chunk IN REVERSE 8..0 LOOP
        LOOP
            BEGIN
                PERFORM pg_advisory_xact_lock((random() * 1e15)::bigint)
                FROM generate_series(1, (2 ^ chunk)::int);
            EXCEPTION WHEN out_of_memory THEN EXIT;
            END;
        END LOOP;
    END LOOP;
END $$";

/// A cluster whose lock table has some three hundred entries, with a control database. The
/// administrator is no superuser, and has the privileges that `docs/OPERATIONS.md` lists.
async fn small() -> (Cluster, TestDatabase) {
    let settings = testing::settings()
        .with("max_locks_per_transaction", "10")
        .with("max_connections", "20")
        .with("max_wal_senders", "2");
    let cluster = Cluster::start(settings).await.unwrap();
    let root = connect(&cluster.url("postgres")).await;
    let admin = "CREATE ROLE keeper LOGIN CREATEROLE CREATEDB PASSWORD 'keeper'; \
                 GRANT pg_signal_backend, pg_read_all_stats TO keeper";
    root.batch_execute(admin).await.unwrap();
    let made = "CREATE TABLE notes (note text); ALTER TABLE notes OWNER TO keeper; \
                CREATE ROLE hog LOGIN PASSWORD 'hog'; COMMENT ON ROLE hog IS 'made by Tidegate'; \
                CREATE ROLE other LOGIN PASSWORD 'other'";
    for sql in ["CREATE DATABASE locked", "CREATE DATABASE elsewhere"] {
        root.batch_execute(sql).await.unwrap();
    }
    let config = config(&cluster.url("postgres"), "locked");
    let config = config.with_login("keeper", Secret::new("keeper"));
    let database = TestDatabase::of(&cluster, "locked", config).await;
    database.beside.batch_execute(made).await.unwrap();
    let guard = "SELECT count(*) FROM pg_stat_activity \
                 WHERE datname = 'locked' AND state = 'idle in transaction'";
    let ready = async {
        while database
            .beside
            .query_one(guard, &[])
            .await
            .unwrap()
            .get::<_, i64>(0)
            == 0
        {}
    };
    soon(ready).await;
    (cluster, database)
}

async fn fill(cluster: &Cluster, role: &str) -> Client {
    let url = cluster.url("elsewhere");
    let url = url.replace(
        &format!("{}:{}", cluster.admin_user(), cluster.admin_password()),
        &format!("{role}:{role}"),
    );
    let hog = connect(&url).await;
    hog.batch_execute(FILL).await.unwrap();
    hog
}

#[tokio::test]
async fn a_users_session_that_fills_the_lock_table_gives_way_to_the_service() {
    let (cluster, database) = small().await;
    let hog = fill(&cluster, "hog").await;
    let full = database
        .beside
        .batch_execute("INSERT INTO notes VALUES ('beside')");
    assert_eq!(full.await.unwrap_err().code().unwrap().code(), "53200");
    let written = database
        .control("INSERT INTO public.notes VALUES ('control')")
        .await;
    written.unwrap();
    assert!(hog.batch_execute("SELECT 1").await.is_err());
    let notes = database
        .beside
        .query_one("SELECT string_agg(note, ' ') FROM notes", &[]);
    assert_eq!(notes.await.unwrap().get::<_, String>(0), "control");
}

/// Returns more definitions for one transaction than PostgreSQL queues invalidation messages for
/// (4,096), so that every session drops its catalog caches.
fn storm() -> String {
    let columns: Vec<String> = (0..1400).map(|column| format!("c{column} int")).collect();
    let table = |number: u32| format!("CREATE TABLE storm{number} ({});", columns.join(", "));
    format!("BEGIN; {} COMMIT", (0..8).map(table).collect::<String>())
}

#[tokio::test]
async fn a_guard_whose_caches_were_emptied_still_makes_room() {
    let (cluster, database) = small().await;
    database.beside.batch_execute(&storm()).await.unwrap();
    let hog = fill(&cluster, "hog").await;
    let written = database
        .control("INSERT INTO public.notes VALUES ('control')")
        .await;
    written.unwrap();
    assert!(hog.batch_execute("SELECT 1").await.is_err());
}

#[tokio::test]
async fn a_session_of_a_role_that_is_not_ours_is_left_alone() {
    let (cluster, database) = small().await;
    let other = fill(&cluster, "other").await;
    let written = database
        .control("INSERT INTO public.notes VALUES ('control')")
        .await;
    // The write used the reserve; the session of the other role continues.
    written.unwrap();
    other
        .batch_execute("SAVEPOINT alive; COMMIT")
        .await
        .unwrap();
}

#[tokio::test]
async fn a_forged_error_ends_nobodys_session() {
    let (cluster, database) = small().await;
    let url = cluster.url("elsewhere");
    let admin = format!("{}:{}", cluster.admin_user(), cluster.admin_password());
    let busy = connect(&url.replace(&admin, "hog:hog")).await;
    let many = "BEGIN; SELECT pg_advisory_xact_lock(n) FROM generate_series(1, 80) n";
    busy.batch_execute(many).await.unwrap();
    let forge = "CREATE FUNCTION public.forge() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'full' \
                 USING ERRCODE = '53200', HINT = 'see max_locks_per_transaction'; END $$";
    database.beside.batch_execute(forge).await.unwrap();
    let forged = "INSERT INTO public.notes VALUES (public.forge())";
    assert!(database.control(forged).await.is_err());
    busy.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test]
async fn a_session_that_goes_on_taking_locks_is_ended() {
    let (cluster, database) = small().await;
    let hog = fill(&cluster, "hog").await;
    let greedy = "DO $$ BEGIN LOOP
            BEGIN PERFORM pg_advisory_xact_lock((random() * 1e15)::bigint);
            EXCEPTION WHEN out_of_memory THEN NULL; END;
        END LOOP; END $$";
    let greedy = tokio::spawn(async move { hog.batch_execute(greedy).await });
    let written = database
        .control("INSERT INTO public.notes VALUES ('control')")
        .await;
    written.unwrap();
    assert!(soon(greedy).await.unwrap().is_err());
}

/// PostgreSQL cannot terminate a session while it parses the name of an operator, which takes
/// quadratic time.
#[tokio::test]
async fn the_service_works_beside_a_session_that_cannot_be_terminated() {
    let (cluster, database) = small().await;
    // This statement is prepared before the table is full, so that it needs no lock later.
    let parses = "SELECT EXISTS (SELECT FROM pg_stat_get_activity(NULL) \
                  WHERE application_name = 'parsing')";
    let parses = database.beside.prepare(parses).await.unwrap();
    let is_parsing = async || -> bool {
        let row = database.beside.query_one(&parses, &[]).await;
        row.unwrap().get(0)
    };
    assert!(!is_parsing().await);
    let hog = fill(&cluster, "hog").await;
    let endless = "DO $$ DECLARE parsed text := 'SELECT ' || repeat('+', 3000000) || '1'; BEGIN \
                   PERFORM set_config('application_name', 'parsing', false); EXECUTE parsed; END $$";
    let parsing = tokio::spawn(async move { hog.batch_execute(endless).await });
    soon(async { while !is_parsing().await {} }).await;
    for _ in 0..50 {
        let written = database
            .control("INSERT INTO public.notes VALUES ('control')")
            .await;
        written.unwrap();
    }
    assert!(!parsing.is_finished());
}
