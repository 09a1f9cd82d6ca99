//! Texts and code of callers that try to become another user.

use tidegate_sql::{Author, Mode, Terms};

use super::{tenant, user};
use crate::stage::{Gathered, Sql};

/// Whatever a caller writes runs on a login that is a member of nothing.
#[tokio::test]
async fn callers_texts_never_reach_a_shared_connection() {
    let (stage, _) = tenant("shared_attacks", 2).await;
    let (name, first) = (&stage.name, user(&stage, 1));
    stage
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
            Sql::new(attack).refusal(&stage, &first).await,
            "42501",
            "{attack}"
        );
        let terms = Terms::default();
        let begun = stage.roles.begin(&first, Mode::ReadWrite, &terms).await;
        let mut bound = Sql::new(attack).bound;
        bound.sets.push(Vec::new());
        let mut transaction = begun.unwrap();
        let ran = transaction.query(&bound, &mut Gathered::default()).await;
        assert_eq!(ran.unwrap_err().sqlstate(), Some("42501"), "{attack}");
    }
    // A method of the owner that hands a caller's value to code.
    for text in [
        "select public.jump(:to)",
        "select set_config('role', :to, true)",
    ] {
        let method = Sql::new(text)
            .by(Author::Owner)
            .set([&format!("\"{other}\"")]);
        assert_eq!(method.refusal(&stage, &first).await, "42501", "{text}");
    }
}
