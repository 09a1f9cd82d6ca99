//! Tests text and code of callers that try to become another user.

use tidegate_sql::{Author, Mode, QueryOptions};

use super::{ours, tenant, user};
use crate::fixture::{CollectedRows, Sql};

/// Text of callers runs on a connection whose login role is not a member of any role.
#[tokio::test]
async fn callers_texts_never_reach_a_shared_connection() {
    let (fixture, _) = tenant("shared_attacks", 2).await;
    let (name, first) = (&fixture.name, user(&fixture, 1));
    fixture
        .admin
        .batch_execute(
            "CREATE FUNCTION public.jump(to_role text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN
                 PERFORM set_config('role', to_role, true); RETURN current_user; END $f$",
        )
        .await
        .unwrap();
    let other = format!("{name}/u2");
    let attacks = [
        format!("select set_config('role', '{other}', true)"),
        format!("do $$ begin set local role \"{other}\"; end $$"),
        format!("select public.jump('{other}')"),
        format!("do $$ begin perform public.jump('none'); perform public.jump('{other}'); end $$"),
    ];
    for attack in &attacks {
        assert_eq!(
            Sql::new(attack).refusal(&fixture, &first).await,
            "42501",
            "{attack}"
        );
        let options = QueryOptions::default();
        let begun = fixture.users.begin(&first, Mode::ReadWrite, &options).await;
        let mut bound = Sql::new(attack).bound;
        bound.sets.push(Vec::new());
        let mut transaction = begun.unwrap();
        let ran = transaction
            .query(&bound, &mut CollectedRows::default())
            .await;
        assert_eq!(ran.unwrap_err().sqlstate(), Some("42501"), "{attack}");
    }
    // The method of the owner passes a caller's value to code.
    for text in [
        "select public.jump(:to)",
        "select set_config('role', :to, true)",
    ] {
        let method = Sql::new(text)
            .by(Author::Owner)
            .set([&format!("\"{other}\"")]);
        assert_eq!(method.refusal(&fixture, &first).await, "42501", "{text}");
    }
}

/// An `UPDATE` of `pg_settings` changes a setting of the session without a call.
#[tokio::test]
async fn settings_that_an_owners_method_updates_do_not_reach_other_users() {
    let (fixture, _) = tenant("shared_settings", 2).await;
    let check = "select current_setting('search_path') || current_setting('lock_timeout')";
    let clean = ours(check).value(&fixture, &user(&fixture, 2)).await;
    for text in [
        "update pg_settings set setting = :v where name = :k",
        "update pg_catalog.\"pg_settings\" set setting = :v where name = :k",
        "update U&\"pg\\005fsettings\" set setting = :v where name = :k",
        "UPDATE PG_SETTINGS SET setting = :v WHERE name = :k",
        "with u as (update pg_settings set setting = :v where name = :k returning 1) select 1",
    ] {
        for login in [&user(&fixture, 1), &fixture.guest(), &fixture.owner()] {
            for values in [
                ["\"pg_catalog\"", "\"search_path\""],
                ["\"1234\"", "\"lock_timeout\""],
            ] {
                let method = Sql::new(text).by(Author::Owner).set(values);
                let left = method.run(&fixture, login).await;
                if let Err(error) = left {
                    // The view `pg_settings` has no rule with RETURNING.
                    assert_eq!(error.sqlstate(), Some("0A000"), "{text}: {error}");
                }
            }
            let next = if *login == user(&fixture, 1) {
                user(&fixture, 2)
            } else {
                login.clone()
            };
            for _ in 0..3 {
                assert_eq!(ours(check).value(&fixture, &next).await, clean, "{text}");
                let own = Sql::new(check).value(&fixture, &next).await;
                assert_eq!(own, clean, "{text}");
            }
        }
    }
}
