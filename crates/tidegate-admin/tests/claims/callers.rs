//! Tests the results of the claims functions for each kind of caller.

use super::fixture::{ClaimsFixture, REFUSED, identity, value};

/// The id and the claims that the functions return.
type Identity = (Option<String>, Option<String>);

fn pair(id: Option<&str>, claims: &str) -> Identity {
    (id.map(str::to_owned), Some(claims.to_owned()))
}

#[tokio::test]
async fn every_kind_of_caller_has_its_identity() {
    let tenant = ClaimsFixture::new("claims_callers").await;
    let (alice, guest) = (tenant.role("alice"), tenant.role("bob"));
    let owner = tenant.login(tenant.name).await;
    assert_eq!(
        identity(&owner).await,
        Ok(pair(Some("claims_callers"), "{}"))
    );

    let user = tenant.login(&alice).await;
    assert_eq!(identity(&user).await, Ok(pair(Some("alice"), "{}")));
    let claims = "{\"org\": \"acme\"}";
    tenant.set_identity(&alice, Some("alice"), claims).await;
    assert_eq!(identity(&user).await, Ok(pair(Some("alice"), claims)));
    let claim = value(&user, "SELECT tidegate.claim('org')").await;
    assert_eq!(claim, Ok(Some("acme".to_owned())));
    tenant.set_identity(&alice, Some("id-7"), claims).await;
    assert_eq!(identity(&user).await, Ok(pair(Some("id-7"), claims)));
    tenant.set_identity(&alice, Some("alice"), "{}").await;
    let rows = "SELECT count(*)::text FROM tidegate_private.identities WHERE role = $$claims_callers/alice$$";
    assert_eq!(value(&tenant.root, rows).await, Ok(Some("0".to_owned())));

    let anonymous = "{\"anonymous\": true}";
    tenant.set_identity(&guest, None, anonymous).await;
    let default_user = tenant.login(&guest).await;
    assert_eq!(identity(&default_user).await, Ok(pair(None, anonymous)));

    // An authenticator acts as the user to whose role it has switched.
    let shared = tenant.login(&tenant.role("$authenticator1")).await;
    shared.batch_execute("BEGIN").await.unwrap();
    let switch = format!("SELECT set_config('role', '{alice}', true)");
    shared.batch_execute(&switch).await.unwrap();
    assert_eq!(identity(&shared).await, Ok(pair(Some("alice"), "{}")));
    shared.batch_execute("COMMIT").await.unwrap();
    assert_eq!(identity(&shared).await, Ok(pair(None, "{}")));

    let group = tenant.group().await;
    assert_eq!(identity(&group).await, Err(REFUSED.to_owned()));
    for (id, claims) in [("m1", claims), ("ü'\"\\ 😀", "{\"a\": \"é\"}")] {
        tenant.begin(&group, id, claims).await;
        assert_eq!(identity(&group).await, Ok(pair(Some(id), claims)));
        group.batch_execute("COMMIT").await.unwrap();
    }
    assert_eq!(identity(&tenant.root).await, Ok(pair(None, "{}")));
}

#[tokio::test]
async fn a_policy_shows_each_caller_its_rows() {
    let tenant = ClaimsFixture::new("claims_policies").await;
    let bodies = "SELECT string_agg(body, ',' ORDER BY body) FROM notes";
    let group = tenant.group().await;
    for member in ["m1", "m2"] {
        tenant.begin(&group, member, "{}").await;
        assert_eq!(
            value(&group, bodies).await,
            Ok(Some(format!("of {member}")))
        );
        group.batch_execute("COMMIT").await.unwrap();
    }
    let user = tenant.login(&tenant.role("bob")).await;
    assert_eq!(value(&user, bodies).await, Ok(Some("of bob".to_owned())));
    // Functions in code that runs with another role's privileges still return the caller's
    // identity.
    let code = format!(
        "CREATE FUNCTION who() RETURNS text LANGUAGE sql SECURITY DEFINER \
             AS 'SELECT tidegate.user_id()'; \
         CREATE VIEW me AS SELECT tidegate.user_id() AS id; GRANT SELECT ON me TO \"{}\"",
        tenant.role("$users")
    );
    tenant.root.batch_execute(&code).await.unwrap();
    for query in ["SELECT who()", "SELECT id FROM me"] {
        assert_eq!(value(&user, query).await, Ok(Some("bob".to_owned())));
    }
}

#[tokio::test]
async fn a_policy_calls_the_function_once_for_a_statement() {
    let tenant = ClaimsFixture::new("claims_plans").await;
    let user = tenant.login(&tenant.role("alice")).await;
    for policy in [
        "owner = (SELECT tidegate.user_id())",
        "org = (SELECT tidegate.claim('org'))",
        "owner = (SELECT tidegate.claims() ->> 'sub')",
    ] {
        let define = format!("ALTER POLICY own ON notes USING ({policy})");
        tenant.root.batch_execute(&define).await.unwrap();
        let rows = user
            .query("EXPLAIN SELECT * FROM notes", &[])
            .await
            .unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains("InitPlan"), "{policy}: {plan}");
    }
}
