//! Tests code that runs in a member's session and tries to act as another member.

use super::fixture::{ClaimsFixture, REFUSED, identity, pid, seal, set, value};
use tidegate_postgres::claims_head;

/// Ways to change the identity, each in a transaction of the member m1.
const FORGERIES: [&str; 9] = [
    "SELECT set_config('tidegate.identity', \
        substr(current_setting('tidegate.identity'), 1, 64) || 'm2', true)",
    "SET LOCAL tidegate.identity = 'm2'",
    "SET LOCAL tidegate.claims = '{}'",
    "RESET tidegate.identity",
    "RESET tidegate.claims",
    "RESET ALL",
    "SELECT set_config('tidegate.claims', '', true)",
    // A seal that is valid if the key is empty.
    "SELECT set_config('tidegate.identity', x.head, true), set_config('tidegate.claims', \
        encode(sha256(sha384(int4send(pg_backend_pid()) || convert_to(x.head, 'UTF8')) \
               || timestamptz_send(now())), 'hex') || '{}', true) \
     FROM (SELECT encode(sha256('{}'), 'hex') || 'm2' AS head) x",
    "SELECT set_config('tidegate.claims', \
        substr(current_setting('tidegate.claims'), 1, 64), true), \
        set_config('tidegate.identity', encode(sha256(''), 'hex') || 'm2', true)",
];

#[tokio::test]
async fn forged_settings_are_refused() {
    let tenant = ClaimsFixture::new("claims_forged").await;
    let group = tenant.group().await;
    for forgery in FORGERIES {
        tenant.begin(&group, "m1", "{\"a\": 1}").await;
        group.batch_execute("SAVEPOINT s").await.unwrap();
        group.batch_execute(forgery).await.unwrap();
        assert_eq!(identity(&group).await, Err(REFUSED.to_owned()), "{forgery}");
        group.batch_execute("ROLLBACK TO s").await.unwrap();
        let own = Ok(Some("m1".to_owned()));
        assert_eq!(value(&group, "SELECT tidegate.user_id()").await, own);
        group.batch_execute("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn other_claims_under_the_same_seal_are_refused() {
    let tenant = ClaimsFixture::new("claims_swapped").await;
    let group = tenant.group().await;
    tenant.begin(&group, "m1", "{\"org\": \"acme\"}").await;
    let swap = "SELECT set_config('tidegate.claims', \
        substr(current_setting('tidegate.claims'), 1, 64) || '{\"org\": \"other\"}', true)";
    group.batch_execute(swap).await.unwrap();
    let claim = value(&group, "SELECT tidegate.claim('org')").await;
    assert_eq!(claim, Err(REFUSED.to_owned()));
}

#[tokio::test]
async fn a_seal_is_valid_for_one_transaction_of_one_backend() {
    let tenant = ClaimsFixture::new("claims_replayed").await;
    let (group, other) = (tenant.group().await, tenant.group().await);
    tenant.begin(&group, "m1", "{}").await;
    let settings = "SELECT current_setting('tidegate.identity') || ' ' || \
                    current_setting('tidegate.claims')";
    let settings = value(&group, settings).await.unwrap().unwrap();
    let (identity_setting, claims_setting) = settings.split_once(' ').unwrap();
    let keep = format!(
        "SELECT set_config('tidegate.identity', '{identity_setting}', false), \
                set_config('tidegate.claims', '{claims_setting}', false)"
    );
    group.batch_execute(&keep).await.unwrap();
    for end in ["COMMIT AND CHAIN", "COMMIT"] {
        group.batch_execute(end).await.unwrap();
        assert_eq!(identity(&group).await, Err(REFUSED.to_owned()), "{end}");
        group.batch_execute("ROLLBACK; BEGIN").await.unwrap();
    }
    other.batch_execute(&keep).await.unwrap();
    assert_eq!(identity(&other).await, Err(REFUSED.to_owned()));
    // The token of one backend is used on another.
    let head = claims_head("m1", "{}");
    let token = tenant.key(1).token(pid(&group).await, &head);
    other.batch_execute("BEGIN").await.unwrap();
    set(&other, &token, (&head, "{}")).await;
    assert_eq!(identity(&other).await, Err(REFUSED.to_owned()));
}

#[tokio::test]
async fn users_with_a_role_cannot_become_members() {
    let tenant = ClaimsFixture::new("claims_users").await;
    let user = tenant.login(&tenant.role("alice")).await;
    for forgery in FORGERIES {
        user.batch_execute("BEGIN").await.unwrap();
        // Some forgeries fail, because they read a setting that does not exist.
        if user.batch_execute(forgery).await.is_ok() {
            let own = Ok(Some("alice".to_owned()));
            assert_eq!(value(&user, "SELECT tidegate.user_id()").await, own);
        }
        user.batch_execute("ROLLBACK").await.unwrap();
    }
    for role in ["bob", "group/staff"] {
        let switch = format!("SET ROLE \"{}\"", tenant.role(role));
        assert!(user.batch_execute(&switch).await.is_err());
    }
    let group = tenant.group().await;
    let switch = format!("SET ROLE \"{}\"", tenant.role("alice"));
    assert!(group.batch_execute(&switch).await.is_err());
}

#[tokio::test]
async fn no_caller_can_read_the_key_or_write_identities() {
    let tenant = ClaimsFixture::new("claims_key").await;
    for role in [
        tenant.name.to_owned(),
        tenant.role("alice"),
        tenant.role("group/staff"),
    ] {
        let caller = tenant.login(&role).await;
        for attempt in [
            "SELECT last_value::text FROM tidegate_private.key_1_a",
            "SELECT pg_sequence_last_value('tidegate_private.key_1_a')::text",
            "SELECT tidegate_private.role_user_id()",
            "SELECT role::text FROM tidegate_private.identities",
            "UPDATE tidegate_private.identities SET user_id = 'm2' RETURNING role::text",
            "CREATE FUNCTION tidegate.claim(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        ] {
            let refused = value(&caller, attempt).await;
            assert_eq!(refused, Err(REFUSED.to_owned()), "{role}: {attempt}");
        }
        let shown = "SELECT string_agg(last_value::text, ',') FROM pg_sequences \
                     WHERE schemaname = 'tidegate_private'";
        assert_eq!(value(&caller, shown).await, Ok(None), "{role}");
    }
}

#[tokio::test]
async fn a_missing_key_refuses_every_member() {
    let tenant = ClaimsFixture::new("claims_keyless").await;
    // A restore of the definitions without the data leaves the sequences in this state.
    let empty = "SELECT setval('tidegate_private.key_1_a', 1, false), \
                        setval('tidegate_private.key_1_b', 1, false)";
    tenant.root.batch_execute(empty).await.unwrap();
    let group = tenant.group().await;
    tenant.begin(&group, "m1", "{}").await;
    assert_eq!(identity(&group).await, Err(REFUSED.to_owned()));
    for forgery in FORGERIES {
        group.batch_execute("ROLLBACK; BEGIN").await.unwrap();
        if group.batch_execute(forgery).await.is_ok() {
            assert_eq!(identity(&group).await, Err(REFUSED.to_owned()), "{forgery}");
        }
    }
    let provided = tenant.admin.provide_claims(tenant.database(), 1).await;
    assert_eq!(provided.unwrap(), tidegate_admin::ClaimsState::Current);
    group.batch_execute("ROLLBACK").await.unwrap();
    tenant.begin(&group, "m1", "{}").await;
    assert_eq!(
        value(&group, "SELECT tidegate.user_id()").await,
        Ok(Some("m1".to_owned()))
    );
}

#[tokio::test]
async fn a_new_key_refuses_tokens_of_the_old_one() {
    let tenant = ClaimsFixture::new("claims_rotated").await;
    let group = tenant.group().await;
    tenant.begin(&group, "m1", "{}").await;
    identity(&group).await.unwrap();
    let generation = "SELECT prosrc FROM pg_proc WHERE proname = 'user_id'";
    assert!(
        value(&tenant.root, generation)
            .await
            .unwrap()
            .unwrap()
            .contains("generation 1")
    );
    let provided = tenant.admin.provide_claims(tenant.database(), 2).await;
    assert_eq!(provided.unwrap(), tidegate_admin::ClaimsState::Current);
    group.batch_execute("ROLLBACK").await.unwrap();
    tenant.begin(&group, "m1", "{}").await;
    assert_eq!(identity(&group).await, Err(REFUSED.to_owned()));
    group.batch_execute("ROLLBACK; BEGIN").await.unwrap();
    let found = tenant
        .root
        .query_one(tidegate_postgres::CLAIMS_GENERATION, &[])
        .await;
    assert_eq!(found.unwrap().get::<_, i32>(0), 2);
    seal(&group, &tenant.key(2), ("m1", "{}")).await;
    assert_eq!(
        value(&group, "SELECT tidegate.user_id()").await,
        Ok(Some("m1".to_owned()))
    );
}
