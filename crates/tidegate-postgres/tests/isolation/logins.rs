//! Changes of a role or database by an operator affect open connections.

use tidegate_sql::Login;

use crate::fixture::{Fixture, Sql};

/// Writes a row. Returns the SQLSTATE if that fails.
async fn write(fixture: &Fixture, login: &Login) -> Option<String> {
    let written = Sql::new("insert into open values (1)")
        .run(fixture, login)
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
    let fixture = super::fixture(name).await;
    let until = "valid until 'infinity'";
    for login in [fixture.alice(), fixture.guest()] {
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
            check(&fixture, &login, (&change, refused)).await;
            let undo = format!("alter role {role} {undo}");
            fixture.admin.batch_execute(&undo).await.unwrap();
            fixture.users.check_logins().await.unwrap();
            comes_back(&fixture, &login).await;
        }
        let change = format!("revoke connect on database {name} from {role}");
        check(&fixture, &login, (&change, "42501")).await;
        let undo = format!("grant connect on database {name} to {role}");
        fixture.admin.batch_execute(&undo).await.unwrap();
        comes_back(&fixture, &login).await;
        let change = format!("alter database {name} set default_transaction_read_only = on");
        check(&fixture, &login, (&change, "25006")).await;
        let undo = format!(
            "set default_transaction_read_only = off; \
             alter database {name} reset default_transaction_read_only"
        );
        fixture.admin.batch_execute(&undo).await.unwrap();
        fixture.users.check_logins().await.unwrap();
        comes_back(&fixture, &login).await;
    }
}

/// Makes a change while the login has an idle connection, checks logins once, and writes again.
async fn check(fixture: &Fixture, login: &Login, (change, refused): (&str, &str)) {
    assert_eq!(write(fixture, login).await, None, "before {change}");
    fixture.rest().await;
    // This check records the state after earlier changes were undone.
    fixture.users.check_logins().await.unwrap();
    assert_eq!(write(fixture, login).await, None, "before {change}");
    fixture.rest().await;
    // Without a change the connection stays open.
    let opened = fixture.users.pool().stats().counters.opened;
    fixture.users.check_logins().await.unwrap();
    assert_eq!(write(fixture, login).await, None, "before {change}");
    assert_eq!(fixture.users.pool().stats().counters.opened, opened);
    fixture.rest().await;
    fixture.admin.batch_execute(change).await.unwrap();
    fixture.users.check_logins().await.unwrap();
    let said = write(fixture, login).await.unwrap_or_default();
    assert!(said.contains(refused), "{change}: {said}");
}

/// Writes until it succeeds, because a refused login is retried only after a delay.
async fn comes_back(fixture: &Fixture, login: &Login) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while let Some(said) = write(fixture, login).await {
        assert!(std::time::Instant::now() < deadline, "{said}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_role_whose_time_passes_finds_no_open_connection() {
    let fixture = super::fixture("time_passes").await;
    let alice = fixture.alice();
    let set = "alter role \"time_passes/alice\" valid until";
    let soon = format!(
        "do $$ begin execute format('{set} %L', clock_timestamp() + interval '1 s'); end $$"
    );
    fixture.admin.batch_execute(&soon).await.unwrap();
    assert_eq!(write(&fixture, &alice).await, None);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        fixture.users.check_logins().await.unwrap();
        let Some(said) = write(&fixture, &alice).await else {
            assert!(std::time::Instant::now() < deadline, "it is never refused");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        };
        assert!(said.contains("28P01"), "{said}");
        break;
    }
}
