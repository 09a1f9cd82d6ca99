//! Groups of users, and memberships that the administrator did not grant.

use tidegate_admin::Error;
use tidegate_admin::doctor::{ChangeSource, Severity};
use tidegate_embedded::testing;

use super::fixture::{
    admin, database, record_tenant, role, root, service_admin, superuser, user, value,
};

const MEMBER: &str = "SELECT string_agg(DISTINCT g.rolname, ',' ORDER BY g.rolname) \
    FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid \
    JOIN pg_roles u ON u.oid = m.member WHERE g.rolname !~ '[$]users$' AND u.rolname = ";

#[tokio::test]
async fn a_membership_granted_by_others_is_reported_with_its_remedy() {
    let admin = admin(service_admin("svc_stays").await);
    let (tenant, ann) = (database("stays"), role("stays/ann"));
    admin.create_tenant(&tenant).await.unwrap();
    admin.create_user(&tenant, &ann).await.unwrap();
    let (old, new) = (role("stays/group/old"), role("stays/group/new"));
    admin
        .set_groups(&tenant, &ann, std::slice::from_ref(&old))
        .await
        .unwrap();
    let root = root("postgres").await;
    let by_another = "GRANT \"stays/group/old\" TO \"stays/ann\"";
    root.batch_execute(by_another).await.unwrap();
    let groups = format!("{MEMBER}'stays/ann'");

    let set = admin
        .set_groups(&tenant, &ann, std::slice::from_ref(&new))
        .await;
    if testing::cluster().version().major >= 16 {
        let Err(Error::StaysMember { role, group, sql }) = set else {
            panic!("{set:?}");
        };
        assert_eq!((&*role, &*group), ("stays/ann", "stays/group/old"));
        let grantor = "SELECT rolname::text FROM pg_roles WHERE oid = 10";
        let grantor = value(&root, grantor).await;
        assert_eq!(
            sql,
            [format!(
                "REVOKE \"stays/group/old\" FROM \"stays/ann\" GRANTED BY \"{grantor}\";"
            )]
        );
        // Neither part of the change was made.
        assert_eq!(value(&root, &groups).await, "stays/group/old");
        root.batch_execute(&sql[0]).await.unwrap();
        admin
            .set_groups(&tenant, &ann, std::slice::from_ref(&new))
            .await
            .unwrap();
    } else {
        set.unwrap();
    }
    assert_eq!(value(&root, &groups).await, "stays/group/new");
}

#[tokio::test]
async fn a_superuser_ends_memberships_of_any_grantor() {
    let maker = admin(service_admin("svc_ended").await);
    let (tenant, ann) = (database("ended"), role("ended/ann"));
    maker.create_tenant(&tenant).await.unwrap();
    maker.create_user(&tenant, &ann).await.unwrap();
    let group = role("ended/group/old");
    maker
        .set_groups(&tenant, &ann, std::slice::from_ref(&group))
        .await
        .unwrap();
    let superuser = admin(superuser());
    superuser.set_groups(&tenant, &ann, &[]).await.unwrap();
    let groups = format!("{MEMBER}'ended/ann'");
    assert_eq!(value(&root("postgres").await, &groups).await, "");
}

#[tokio::test]
async fn a_membership_that_the_doctor_prints_is_the_administrators_to_end() {
    let mut config = service_admin("svc_regroup").await;
    config.control_database = database("regroup_control");
    let admin = admin(config);
    let (tenant, ann) = (database("regroup"), role("regroup/ann"));
    admin.create_tenant(&tenant).await.unwrap();
    admin.create_user(&tenant, &ann).await.unwrap();
    record_tenant("regroup_control", "regroup", Some(("regroup/ann", "old"))).await;
    let root = root("postgres").await;
    let groups = format!("{MEMBER}'regroup/ann'");
    let come_back = "CREATE ROLE \"regroup/group/old\"; \
                     COMMENT ON ROLE \"regroup/group/old\" IS 'made by Tidegate'";
    // In the first round the group was dropped; in the second a superuser restored it from a
    // backup.
    for group_is_there in [false, true] {
        if group_is_there {
            root.batch_execute(come_back).await.unwrap();
        }
        let findings = admin.examine_tenants(ChangeSource::Outbox).await.unwrap();
        let mut findings = findings.into_iter();
        let outside = findings.find(|finding| finding.text.contains("roles of their groups"));
        let sql = outside.unwrap().sql.unwrap();
        root.batch_execute(&sql).await.unwrap();
        assert_eq!(value(&root, &groups).await, "regroup/group/old");
        admin.set_groups(&tenant, &ann, &[]).await.unwrap();
        assert_eq!(value(&root, &groups).await, "");
        let drop = "DROP ROLE \"regroup/group/old\"";
        root.batch_execute(drop).await.unwrap();
    }
}

#[tokio::test]
async fn the_doctor_asks_for_the_groups_of_members_and_not_for_memberships() {
    let mut config = service_admin("svc_crowd").await;
    config.control_database = database("crowd_control");
    let admin = admin(config);
    let (tenant, ann) = (database("crowd"), role("crowd/ann"));
    admin.create_tenant(&tenant).await.unwrap();
    admin.create_user(&tenant, &ann).await.unwrap();
    let staff = role("crowd/group/staff");
    let set = admin.set_groups(&tenant, &ann, std::slice::from_ref(&staff));
    set.await.unwrap();
    record_tenant("crowd_control", "crowd", Some(("crowd/ann", "staff"))).await;
    let members = "INSERT INTO tidegate.users VALUES ('crowd', 'crowd', NULL), \
                   ('crowd', NULL, 'staff'), ('crowd', NULL, 'buyers'), ('crowd', NULL, 'buyers')";
    let control = root("crowd_control").await;
    control.batch_execute(members).await.unwrap();
    let bad = async || {
        let findings = admin.examine_tenants(ChangeSource::Outbox).await.unwrap();
        let findings = findings.into_iter();
        let bad = findings.filter(|finding| finding.severity == Severity::Missing);
        bad.collect::<Vec<_>>()
    };
    let found = bad().await;
    let [missing] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        missing.text,
        "groups of members of the tenant crowd have no role: crowd/group/buyers"
    );
    let root = root("postgres").await;
    let sql = missing.sql.as_ref().unwrap();
    root.batch_execute(sql).await.unwrap();
    let found = bad().await;
    assert!(found.is_empty(), "{found:?}");
    let owner = format!("{MEMBER}'crowd'");
    assert!(!value(&root, &owner).await.contains("crowd/group/"));
    let buyers = role("crowd/group/buyers");
    admin.make_group_login(&tenant, &buyers).await.unwrap();
}

#[tokio::test]
async fn a_group_logs_in_for_its_members() {
    let mut config = service_admin("svc_group_login").await;
    config.control_database = database("group_login_control");
    let admin = admin(config);
    let (tenant, group) = (database("group_login"), role("group_login/group/staff"));
    admin.create_tenant(&tenant).await.unwrap();
    record_tenant("group_login_control", "group_login", None).await;
    assert_eq!(admin.group_logins(&tenant).await.unwrap(), []);
    let ann = role("group_login/ann");
    admin.create_user(&tenant, &ann).await.unwrap();
    let set = admin.set_groups(&tenant, &ann, std::slice::from_ref(&group));
    set.await.unwrap();
    assert!(user("group_login", group.as_str()).await.is_err());
    // The role exists, and the second call changes nothing.
    for _ in 0..2 {
        admin.make_group_login(&tenant, &group).await.unwrap();
    }
    let session = user("group_login", group.as_str()).await.unwrap();
    let may = "SELECT has_schema_privilege('public', 'USAGE')::text";
    assert_eq!(value(&session, may).await, "true");
    let logins = admin.group_logins(&tenant).await.unwrap();
    assert_eq!(logins, std::slice::from_ref(&group));
    let users = format!("{MEMBER}'group_login/ann'");
    let root = root("postgres").await;
    assert_eq!(value(&root, &users).await, group.as_str());
    // Another group does not exist yet.
    let other = role("group_login/group/other");
    admin.make_group_login(&tenant, &other).await.unwrap();
    user("group_login", other.as_str()).await.unwrap();
    // Code in a session of the group can change its password.
    let change = "ALTER ROLE CURRENT_USER PASSWORD 'other'";
    session.batch_execute(change).await.unwrap();
    let findings = admin.examine_tenants(ChangeSource::Outbox).await.unwrap();
    let found = findings
        .iter()
        .find(|finding| finding.text.contains("have another password"));
    let found = found.unwrap();
    assert!(found.text.contains("group_login/group/staff"), "{found:?}");
    assert!(!found.text.contains("group/other"), "{found:?}");
    admin.drop_tenant(&tenant, &[]).await.unwrap();
}
