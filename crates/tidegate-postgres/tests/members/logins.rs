//! The login of a group.

use std::time::{Duration, Instant};

use tidegate_sql::{Error, LoginRefused};

use super::{ID, member, ours, quoted, tenant};

#[tokio::test]
async fn a_group_that_loses_its_login_has_no_open_connection() {
    let fixture = tenant("members_nologin", 1).await;
    let one = member(&fixture, 1);
    assert_eq!(ours(ID).value(&fixture, &one).await, quoted(1));
    fixture.rest().await;
    // This records the state of the login.
    fixture.users.check_logins().await.unwrap();
    let alter = |what: &str| format!("ALTER ROLE \"members_nologin/group/staff\" {what}");
    fixture
        .admin
        .batch_execute(&alter("NOLOGIN"))
        .await
        .unwrap();
    fixture.users.check_logins().await.unwrap();
    let refused = ours(ID).run(&fixture, &one).await.unwrap_err();
    assert_eq!(refused.sqlstate(), Some("28000"), "{refused:?}");
    fixture.admin.batch_execute(&alter("LOGIN")).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    // A refused login is retried only after a delay.
    while let Err(error) = ours(ID).run(&fixture, &one).await {
        assert!(Instant::now() < deadline, "{error:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A group can change its own password, as any role can. Its members then get 503, as a user does.
#[tokio::test]
async fn a_group_that_changes_its_password_locks_its_members_out() {
    let fixture = tenant("members_password", 1).await;
    let one = member(&fixture, 1);
    let change = "CREATE FUNCTION lock_out() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN
        ALTER ROLE CURRENT_USER PASSWORD 'other'; RETURN tidegate.user_id(); END $f$";
    fixture.admin.batch_execute(change).await.unwrap();
    assert_eq!(
        ours("select lock_out()").value(&fixture, &one).await,
        quoted(1)
    );
    fixture.rest().await;
    fixture.users.pool().close(&one.database);
    let error = ours(ID).run(&fixture, &one).await.unwrap_err();
    let Error::Unavailable {
        source: Some(source),
        ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert!(source.is::<LoginRefused>(), "{source:?}");
}
