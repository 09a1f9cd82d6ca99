//! Sign-in, refresh and the lookups of a request read indexes, so that their cost does not grow with
//! the number of members.

use std::sync::Arc;

use tidegate_identity::{
    AttemptKey, AttemptLimit, BrowserSession, SecretHash, Timestamp, UserKey, UserQuery,
};
use tidegate_oauth::IssuerStore;
use tidegate_store::PgOauthStore;
use tidegate_testkit::eventually;
use tokio_postgres::Client;

use crate::fixture::{Fixture, connections};
use crate::store::{NOW, session};

/// Creates so many members that PostgreSQL uses every index instead of reading the table.
const SEEDED: &str = "\
    insert into tidegate.users (database, name, kind, id, email, user_group, default_user, \
        created_at) \
      select 'shop', 'm' || n, 'member', 'id-' || n, 'm' || n || '@example.org', 'people', false, \
        now() \
      from generate_series(1, 20000) n; \
    insert into tidegate.sessions (id, database, user_name, client_id, grant_kind, presented, \
        created_at, refreshed_at, expires_at, closes_at) \
      select gen_random_uuid(), 'shop', 'm' || n, 'app', 'password', 0, now(), now(), \
        now() + interval '1 day', now() + interval '1 day' \
      from generate_series(1, 20000) n; \
    insert into tidegate.browser_sessions (id, database, user_name, stamp, agent, \
        second_factor, created_at, seen_at, expires_at) \
      select sha256(n::text::bytea), 'shop', 'm' || n, sha256('x'), '', false, now(), now(), \
        now() + interval '1 day' \
      from generate_series(1, 20000) n; \
    insert into tidegate.attempts (scope, subject, count, expires_at) \
      select 'account', n::text, 1, now() + interval '1 day' from generate_series(1, 20000) n; \
    analyze";

/// How often each table was read from its beginning to its end.
async fn whole_reads(client: &Client) -> Vec<(String, i64)> {
    let query = "select relname::text, seq_scan from pg_stat_user_tables \
        where relname in ('users', 'sessions', 'browser_sessions', 'attempts') order by 1";
    let rows = client.query(query, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Waits until the other sessions of the database have ended, which is when PostgreSQL publishes
/// their counts.
async fn alone(client: &Client) {
    let query = "select count(*) from pg_stat_activity \
        where datname = current_database() and backend_type = 'client backend' \
          and pid <> pg_backend_pid()";
    eventually("the other sessions end", async || {
        let row = client.query_one(query, &[]).await.unwrap();
        row.get::<_, i64>(0) == 0
    })
    .await;
}

async fn sign_in_refresh_and_look_up(store: &dyn IssuerStore) {
    let (key, at) = (UserKey::new("shop", "m77"), NOW);
    let attempt = AttemptKey::of_text("account", "m77");
    let limit = AttemptLimit::growing(10);
    store.count_attempt(&attempt, &limit, at).await.unwrap();
    assert!(store.user(&key).await.unwrap().is_some());
    store.refund_attempt(&attempt).await.unwrap();
    store.set_password_hash(&key, None, "hash").await.unwrap();
    let opened = session(77, "shop", "m77", "app");
    store.insert_session(&opened).await.unwrap();
    let later = Timestamp::from_millis(i64::MAX / 2);
    let presented = store.present_refresh_token(opened.id, 1, at, later);
    presented.await.unwrap();
    assert!(store.session(opened.id).await.unwrap().is_some());
    let unknown = SecretHash::from_bytes([7; 32]);
    assert!(
        store
            .use_personal_token(unknown, at)
            .await
            .unwrap()
            .is_none()
    );
    assert!(store.user_with_id("shop", "id-77").await.unwrap().is_some());
    let email = store.users_with_email("shop", "M77@example.org").await;
    assert_eq!(email.unwrap().len(), 1);
    assert!(store.has_similar_user("shop", "M77").await.unwrap());
    let linked = store.user_of_identity("shop", "https://id.example", "77");
    assert!(linked.await.unwrap().is_none());
    store.second_factor(&key).await.unwrap();
    let browser = BrowserSession {
        id: unknown,
        user: key.clone(),
        password_fingerprint: unknown,
        second_factor: false,
        agent: String::new(),
        address: None,
        created_at: at,
        seen_at: at,
        expires_at: later,
    };
    store.insert_browser_session(&browser).await.unwrap();
    assert!(store.browser_session(unknown).await.unwrap().is_some());
    let page = UserQuery {
        kind: None,
        group: Some("people".to_owned()),
        after: Some("m5".to_owned()),
        limit: 10,
    };
    assert_eq!(store.user_page("shop", &page).await.unwrap().len(), 10);
    assert_eq!(store.member_groups("shop").await.unwrap(), ["people"]);
    assert!(store.default_user("shop").await.unwrap().is_none());
    let reason = tidegate_identity::EndReason::UserDisabled;
    let ended = store.end_sessions_of_user(&key, reason, at).await.unwrap();
    assert!(ended.contains(&opened.id));
    store.delete_user(&key, at).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_step_of_a_sign_in_reads_a_whole_table() {
    let fixture = Fixture::migrated("many_members").await;
    fixture.beside.batch_execute(SEEDED).await.unwrap();
    // The migrations have read the tables when they were empty.
    let Fixture {
        control, beside, ..
    } = fixture;
    drop(control);
    alone(&beside).await;
    // Its background tasks connect at once, so it is opened after the wait.
    let executor = Arc::new(connections("many_members"));
    let store: Arc<dyn IssuerStore> = Arc::new(PgOauthStore::new(executor));
    let before = whole_reads(&beside).await;
    sign_in_refresh_and_look_up(&*store).await;
    drop(store);
    alone(&beside).await;
    assert_eq!(whole_reads(&beside).await, before);
}
