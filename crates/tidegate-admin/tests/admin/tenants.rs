use tidegate_admin::{Admin, Error};

use super::fixture::{
    admin, connect, database, refusal, role, root, service_admin, superuser, user, value,
};

#[tokio::test]
async fn the_owner_has_its_database_and_others_are_kept_out() {
    let admin = admin(service_admin("svc_made").await);
    admin.create_tenant(&database("made_one")).await.unwrap();
    admin.create_tenant(&database("made_two")).await.unwrap();

    let owner = user("made_one", "made_one").await.unwrap();
    owner
        .batch_execute("CREATE TABLE t (id int); CREATE SCHEMA more")
        .await
        .unwrap();
    owner
        .batch_execute("CREATE TEMP TABLE scratch (id int)")
        .await
        .unwrap();
    let stranger = user("made_one", "made_two").await.unwrap_err();
    assert_eq!(stranger.code().unwrap().code(), "42501");

    let root = root("made_one").await;
    let facts = "SELECT concat_ws(' ', rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, \
                 rolreplication, rolbypassrls) FROM pg_roles WHERE rolname = 'made_one'";
    assert_eq!(value(&root, facts).await, "t f f f f f");
    let owners = "SELECT concat_ws(' ', datdba::regrole, \
                  (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'public')) \
                  FROM pg_database WHERE datname = 'made_one'";
    assert_eq!(value(&root, owners).await, "svc_made made_one");
    let everybody = "SELECT concat_ws(' ', has_database_privilege('public', 'made_one', 'CONNECT'), \
                     has_database_privilege('public', 'made_one', 'TEMP'), \
                     has_schema_privilege('public', 'public', 'CREATE'))";
    assert_eq!(value(&root, everybody).await, "f f f");
}

#[tokio::test]
async fn nodes_take_turns_to_change_groups() {
    let config = service_admin("svc_turns").await;
    let nodes = [admin(config.clone()), admin(config)];
    let tenant = database("turns");
    let turn = nodes[0].lock_groups(&tenant).await.unwrap();
    let other = nodes[1].lock_groups(&database("turns_2")).await;
    drop(other.expect("another tenant's groups are not waited for"));
    let second = nodes[1].clone();
    let waiting = tokio::spawn(async move { second.lock_groups(&tenant).await });
    let root = root("postgres").await;
    let waits = "SELECT count(*)::text FROM pg_stat_activity \
                 WHERE wait_event_type = 'Lock' AND wait_event = 'advisory' AND usename = 'svc_turns'";
    while value(&root, waits).await != "1" {
        assert!(!waiting.is_finished(), "it did not wait");
    }
    drop(turn);
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_group_gives_its_members_what_it_has() {
    let admin = admin(service_admin("svc_group").await);
    let tenant = database("grouped");
    admin.create_tenant(&tenant).await.unwrap();
    let alice = role("grouped/alice");
    admin.create_user(&tenant, &alice).await.unwrap();
    let (staff, press) = (role("grouped/group/staff"), role("grouped/group/press"));
    admin
        .set_groups(&tenant, &alice, std::slice::from_ref(&staff))
        .await
        .unwrap();
    let owner = user("grouped", "grouped").await.unwrap();
    owner
        .batch_execute(
            "CREATE TABLE t (id int); INSERT INTO t VALUES (1); \
             GRANT SELECT ON t TO \"grouped/group/staff\"",
        )
        .await
        .unwrap();
    let session = user("grouped", "grouped/alice").await.unwrap();
    assert_eq!(value(&session, "SELECT id::text FROM t").await, "1");
    // The user moves to another group, out of all groups, into both, and into one again. The group
    // has kept its privileges.
    let both = [staff.clone(), press.clone()];
    for (groups, may) in [
        (&both[1..], false),
        (&[][..], false),
        (&both[..], true),
        (&both[..1], true),
    ] {
        admin.set_groups(&tenant, &alice, groups).await.unwrap();
        let may_read = "SELECT has_table_privilege('t', 'SELECT')::text";
        assert_eq!(
            value(&session, may_read).await,
            may.to_string(),
            "{groups:?}"
        );
        let members = "SELECT count(*)::text FROM pg_auth_members \
                       WHERE member = '\"grouped/alice\"'::regrole \
                       AND roleid <> '\"grouped/$users\"'::regrole";
        assert_eq!(value(&session, members).await, groups.len().to_string());
    }
    let login = connect("grouped", "grouped/group/staff", "").await;
    assert!(login.is_err(), "nobody logs in as a group");
    drop((owner, session));
    let roles = ["grouped".to_owned(), "grouped/alice".to_owned()];
    admin.drop_tenant(&tenant, &roles).await.unwrap();
    let left = "SELECT count(*)::text FROM pg_roles WHERE rolname LIKE 'grouped%'";
    assert_eq!(value(&root("postgres").await, left).await, "0");
}

#[tokio::test]
async fn postgres_gets_a_verifier_and_never_the_password() {
    let admin = admin(service_admin("svc_verifier").await);
    admin.create_tenant(&database("verifier")).await.unwrap();
    let root = root("postgres").await;
    let kept = "SELECT rolpassword FROM pg_authid WHERE rolname = 'verifier'";
    assert!(value(&root, kept).await.starts_with("SCRAM-SHA-256$1:"));
}

#[tokio::test]
async fn a_user_may_connect_and_look_and_nothing_else() {
    let admin = admin(service_admin("svc_user").await);
    let tenant = database("users_of");
    admin.create_tenant(&tenant).await.unwrap();
    admin
        .create_user(&tenant, &role("users_of/al\"ice"))
        .await
        .unwrap();
    let owner = user("users_of", "users_of").await.unwrap();
    owner
        .batch_execute("CREATE TABLE t (id int); INSERT INTO t VALUES (1)")
        .await
        .unwrap();

    let alice = user("users_of", "users_of/al\"ice").await.unwrap();
    for sql in [
        "SELECT * FROM t",
        "CREATE TABLE u (id int)",
        "CREATE TEMP TABLE u (id int)",
        "CREATE SCHEMA s",
    ] {
        assert_eq!(refusal(&alice, sql).await, "42501", "{sql}");
    }
    owner
        .batch_execute("GRANT SELECT ON t TO \"users_of/al\"\"ice\"")
        .await
        .unwrap();
    assert_eq!(value(&alice, "SELECT id::text FROM public.t").await, "1");

    // The user is a member of the role of all users, and the service grants no other membership.
    // From PostgreSQL 16 on, the creator of a role is a member with neither INHERIT nor SET;
    // earlier versions have no such options.
    let members = "SELECT string_agg(concat(r.rolname, ' ', m.member::regrole), ', ') \
                   FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid \
                   WHERE r.rolname LIKE 'users_of%' \
                   AND NOT to_jsonb(m) @> '{\"inherit_option\": false, \"set_option\": false}'";
    assert_eq!(
        value(&root("postgres").await, members).await,
        "users_of/$users \"users_of/al\"\"ice\""
    );
}

#[tokio::test]
async fn names_that_are_taken_are_refused_and_nothing_is_left_behind() {
    let admin = admin(service_admin("svc_taken").await);
    let root = root("postgres").await;
    root.batch_execute("CREATE ROLE taken_role").await.unwrap();
    root.batch_execute("CREATE DATABASE taken_db")
        .await
        .unwrap();

    let error = admin
        .create_tenant(&database("taken_db"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::DatabaseExists(_)), "{error}");
    let error = admin
        .create_tenant(&database("taken_role"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::RoleExists(_)), "{error}");
    let found = "SELECT concat_ws(' ', \
                 (SELECT count(*) FROM pg_roles WHERE rolname = 'taken_db'), \
                 (SELECT count(*) FROM pg_database WHERE datname = 'taken_role'))";
    assert_eq!(value(&root, found).await, "0 0");
}

#[tokio::test]
async fn of_concurrent_creations_one_succeeds_and_none_is_undone() {
    let config = service_admin("svc_race").await;
    let nodes: Vec<_> = (0..4).map(|_| admin(config.clone())).collect();
    for name in ["raced_one", "raced_two"] {
        let tenant = database(name);
        let made = nodes.iter().map(|node| node.create_tenant(&tenant));
        let made = futures_util::future::join_all(made).await;
        let count = made.iter().filter(|made| made.is_ok()).count();
        assert_eq!(count, 1, "{made:?}");
        let refused = made.iter().filter_map(|made| made.as_ref().err());
        for error in refused {
            assert!(matches!(error, Error::DatabaseExists(_)), "{error}");
        }
        let owner = user(name, name).await.unwrap();
        owner.batch_execute("CREATE TABLE t (a int)").await.unwrap();
    }
}

#[tokio::test]
async fn the_control_database_is_made_once_by_nodes_that_start_together() {
    let mut config = service_admin("svc_control").await;
    config.control_database = database("raced_control");
    let nodes: Vec<_> = (0..4).map(|_| admin(config.clone())).collect();
    let made = nodes.iter().map(Admin::prepare_control_database);
    for made in futures_util::future::join_all(made).await {
        made.unwrap();
    }
    // The database now belongs to the service. The service never takes over databases of others or
    // of the cluster.
    nodes[0].prepare_control_database().await.unwrap();
    let root = root("raced_control").await;
    root.batch_execute("CREATE TABLE public.bills (id int)")
        .await
        .unwrap();
    let mut refused = vec![(
        config.control_database.clone(),
        "it is a tenant's, or others",
    )];
    nodes[0]
        .create_tenant(&database("raced_tenant"))
        .await
        .unwrap();
    for own in ["postgres", "template1", "raced_tenant"] {
        refused.push((database(own), "it is"));
    }
    for (name, why) in refused {
        config.control_database = name;
        let error = admin(config.clone()).prepare_control_database().await;
        match error {
            Err(Error::Occupied { reason, .. }) => assert!(reason.starts_with(why), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_new_tenant_has_nothing_of_template1() {
    let admin = admin(superuser());
    let template = root("template1").await;
    template
        .batch_execute("SELECT lo_create(990011)")
        .await
        .unwrap();
    drop(template);
    let tenant = database("pristine");
    let created = admin.create_tenant(&tenant).await;
    let template = root("template1").await;
    template
        .batch_execute("SELECT lo_unlink(990011)")
        .await
        .unwrap();
    created.unwrap();
    let found = "SELECT count(*)::text FROM pg_largeobject_metadata";
    assert_eq!(value(&root("pristine").await, found).await, "0");
}

#[tokio::test]
async fn only_roles_that_the_owner_allows_take_advisory_locks() {
    let admin = admin(superuser());
    let (tenant, ann) = (database("locks"), role("locks/ann"));
    admin.create_tenant(&tenant).await.unwrap();
    admin.create_user(&tenant, &ann).await.unwrap();
    let (owner, anns) = (
        user("locks", "locks").await.unwrap(),
        user("locks", "locks/ann").await.unwrap(),
    );
    for wait in ["", "try_"] {
        for level in ["", "xact_"] {
            for mode in ["", "_shared"] {
                for arguments in ["1", "1, 2"] {
                    let call = format!("SELECT pg_{wait}advisory_{level}lock{mode}({arguments})");
                    assert_eq!(refusal(&anns, &call).await, "42501", "{call}");
                    owner.batch_execute(&call).await.unwrap();
                }
            }
        }
    }
    owner
        .batch_execute("SELECT pg_advisory_unlock_all()")
        .await
        .unwrap();
    let grant = "GRANT EXECUTE ON FUNCTION pg_advisory_lock(bigint) TO \"locks/ann\"";
    owner.batch_execute(grant).await.unwrap();
    anns.batch_execute("SELECT pg_advisory_lock(1)")
        .await
        .unwrap();
}
