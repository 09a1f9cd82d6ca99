//! What an operator changes of a role or database counts for connections that are open.

use tidegate_sql::Login;

use crate::stage::{Sql, Stage};

/// What a write of the login answers: an SQLSTATE, or nothing.
async fn write(stage: &Stage, login: &Login) -> Option<String> {
    let written = Sql::new("insert into open values (1)")
        .run(stage, login)
        .await;
    let error = written.err()?;
    Some(
        error
            .sqlstate()
            .map_or_else(|| format!("{error:?}"), str::to_owned),
    )
}

#[tokio::test]
async fn a_role_that_may_not_log_in_or_write_any_more_finds_no_open_connection() {
    let name = "operator_says";
    let stage = super::stage(name).await;
    let until = "valid until 'infinity'";
    for login in [stage.alice(), stage.guest()] {
        let role = format!("\"{}\"", login.role);
        for (change, undo, refused) in [
            ("nologin".to_owned(), "login".to_owned(), "28000"),
            (
                "valid until '2020-01-01'".to_owned(),
                until.to_owned(),
                "28P01",
            ),
            (
                "set default_transaction_read_only = on".to_owned(),
                "reset default_transaction_read_only".to_owned(),
                "25006",
            ),
            (
                format!("in database {name} set default_transaction_read_only = on"),
                format!("in database {name} reset default_transaction_read_only"),
                "25006",
            ),
        ] {
            let change = format!("alter role {role} {change}");
            check(&stage, &login, (&change, refused)).await;
            let undo = format!("alter role {role} {undo}");
            stage.admin.batch_execute(&undo).await.unwrap();
            stage.roles.check_logins().await.unwrap();
            comes_back(&stage, &login).await;
        }
        let change = format!("revoke connect on database {name} from {role}");
        check(&stage, &login, (&change, "42501")).await;
        let undo = format!("grant connect on database {name} to {role}");
        stage.admin.batch_execute(&undo).await.unwrap();
        comes_back(&stage, &login).await;
        let change = format!("alter database {name} set default_transaction_read_only = on");
        check(&stage, &login, (&change, "25006")).await;
        let undo = format!(
            "set default_transaction_read_only = off; \
             alter database {name} reset default_transaction_read_only"
        );
        stage.admin.batch_execute(&undo).await.unwrap();
        stage.roles.check_logins().await.unwrap();
        comes_back(&stage, &login).await;
    }
}

/// Makes a change while the login has an idle connection, and looks once.
async fn check(stage: &Stage, login: &Login, (change, refused): (&str, &str)) {
    assert_eq!(write(stage, login).await, None, "before {change}");
    stage.rest().await;
    // Of what was undone before.
    stage.roles.check_logins().await.unwrap();
    assert_eq!(write(stage, login).await, None, "before {change}");
    stage.rest().await;
    // Nothing has changed: the connection stays.
    let opened = stage.roles.pool().stats().counters.opened;
    stage.roles.check_logins().await.unwrap();
    assert_eq!(write(stage, login).await, None, "before {change}");
    assert_eq!(stage.roles.pool().stats().counters.opened, opened);
    stage.rest().await;
    stage.admin.batch_execute(change).await.unwrap();
    stage.roles.check_logins().await.unwrap();
    let said = write(stage, login).await.unwrap_or_default();
    assert!(said.contains(refused), "{change}: {said}");
}

/// A login that was refused is tried again after a moment.
async fn comes_back(stage: &Stage, login: &Login) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while let Some(said) = write(stage, login).await {
        assert!(std::time::Instant::now() < deadline, "{said}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_role_whose_time_passes_finds_no_open_connection() {
    let stage = super::stage("time_passes").await;
    let alice = stage.alice();
    let set = "alter role \"time_passes/alice\" valid until";
    let soon = format!(
        "do $$ begin execute format('{set} %L', clock_timestamp() + interval '1 s'); end $$"
    );
    stage.admin.batch_execute(&soon).await.unwrap();
    assert_eq!(write(&stage, &alice).await, None);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        stage.roles.check_logins().await.unwrap();
        let Some(said) = write(&stage, &alice).await else {
            assert!(std::time::Instant::now() < deadline, "it is never refused");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        };
        assert!(said.contains("28P01"), "{said}");
        break;
    }
}
