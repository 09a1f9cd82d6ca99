//! Keys that change, and databases that refuse the claims.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::join_all;
use tidegate_sql::{Author, Error, Mode};

use super::{BODIES, ID, bodies, in_transaction, install, member, ours, quoted, request, tenant};
use crate::fixture::{Sql, connect};

fn is_refused(error: &Error) -> bool {
    let Error::Unavailable { source, .. } = error else {
        return false;
    };
    let source = source
        .as_deref()
        .map(ToString::to_string)
        .unwrap_or_default();
    source.contains("not set by Tidegate")
}

#[tokio::test]
async fn a_request_after_a_rotation_is_repeated_with_the_new_key() {
    let mut fixture = tenant("members_rotation", 1).await;
    let login = member(&fixture, 1);
    for (generation, kind) in (2..).zip([0, 1, 2, 3, 6, 7]) {
        request(&fixture, 1, 0).await;
        install(&fixture.name, &mut fixture.admin, generation).await;
        request(&fixture, 1, kind).await;
        assert_eq!(ours(ID).value(&fixture, &login).await, quoted(1));
    }
}

/// A restore of the definitions without the data leaves the keys in this state.
#[tokio::test]
async fn a_database_without_the_key_is_unavailable_to_members() {
    let mut fixture = tenant("members_no_key", 1).await;
    let login = member(&fixture, 1);
    request(&fixture, 1, 0).await;
    let restart = "ALTER SEQUENCE tidegate_private.key_1_a RESTART;
                   ALTER SEQUENCE tidegate_private.key_1_b RESTART";
    fixture.admin.batch_execute(restart).await.unwrap();
    let read = ours(BODIES).run(&fixture, &login).await.unwrap_err();
    assert!(is_refused(&read), "{read:?}");
    let method = Sql::new(ID).by(Author::Owner).run(&fixture, &login).await;
    assert!(is_refused(&method.unwrap_err()));
    let texts = ["select 1", BODIES];
    let late = in_transaction(&fixture, &login, Mode::ReadWrite, &texts).await;
    assert!(is_refused(&late.unwrap_err()));
    // A statement that does not read the claims needs no key.
    assert_eq!(ours("select 7").value(&fixture, &login).await, "7");
    install(&fixture.name, &mut fixture.admin, 2).await;
    let rows = ours(BODIES).run(&fixture, &login).await.unwrap();
    assert_eq!(rows.values, bodies(1));
}

#[tokio::test]
async fn a_database_without_the_functions_is_unavailable_to_members() {
    let fixture = tenant("members_no_functions", 1).await;
    let drop = "DROP SCHEMA tidegate CASCADE";
    fixture.admin.batch_execute(drop).await.unwrap();
    let error = ours("select 1").run(&fixture, &member(&fixture, 1)).await;
    assert!(matches!(error, Err(Error::Unavailable { .. })), "{error:?}");
}

/// Another role could put code there that grants what the policies do not.
#[tokio::test]
async fn functions_of_another_role_are_not_used() {
    for (number, take) in [
        "ALTER FUNCTION tidegate.user_id() OWNER TO",
        "ALTER SCHEMA tidegate OWNER TO",
        "ALTER FUNCTION tidegate_private.role_claims() OWNER TO",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("members_foreign_{number}");
        let fixture = tenant(&name, 1).await;
        let taken = format!("{take} \"{name}\"");
        fixture.admin.batch_execute(&taken).await.unwrap();
        let login = member(&fixture, 1);
        let error = ours("select 1").run(&fixture, &login).await;
        assert!(matches!(error, Err(Error::Unavailable { .. })), "{error:?}");
        let back = format!("{take} CURRENT_USER");
        fixture.admin.batch_execute(&back).await.unwrap();
        assert_eq!(ours(ID).value(&fixture, &login).await, quoted(1));
    }
}

/// A statement may meet a rotation at any moment. (A transaction that meets one between two
/// statements fails.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_during_rotations_succeed() {
    let mut fixture = tenant("members_rotations", 8).await;
    let mut admin = connect(&fixture.url()).await;
    std::mem::swap(&mut fixture.admin, &mut admin);
    let name = fixture.name.clone();
    let rotated = AtomicBool::new(false);
    let rounds: Vec<AtomicUsize> = (0..12).map(|_| AtomicUsize::new(0)).collect();
    let reads = |number: usize| {
        let (fixture, rotated, round) = (&fixture, &rotated, &rounds[number]);
        async move {
            while !rotated.load(Ordering::Relaxed) {
                for kind in [0, 3, 6, 7] {
                    request(fixture, number + 1, kind).await;
                }
                round.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let rotations = async {
        for generation in 2..30 {
            install(&name, &mut admin, generation).await;
            // No request meets two rotations: each is repeated only once.
            let begun: Vec<_> = rounds
                .iter()
                .map(|round| round.load(Ordering::Relaxed))
                .collect();
            let is_behind =
                |(round, begun): (&AtomicUsize, &usize)| round.load(Ordering::Relaxed) < begun + 2;
            while rounds.iter().zip(&begun).any(is_behind) {
                request(&fixture, 20, 0).await;
            }
        }
        rotated.store(true, Ordering::Relaxed);
    };
    tokio::join!(join_all((0..rounds.len()).map(reads)), rotations);
}
