//! What every store of methods must do, run against the one in memory and the one in PostgreSQL.

use std::sync::Arc;

use tidegate_methods::store::{NewMethod, Revision, Versioned};
use tidegate_methods::{Definition, Limits, MethodName, MethodStore, Record, Signature, Written};
use tidegate_oauth::{Timestamp, UserKey};
use tidegate_postgres::control::Notice;
use tidegate_sql::DatabaseName;
use tidegate_store::{Change, PgMethodStore};
use tokio::task::JoinSet;

use crate::stage::{Stage, listening, soon};
use crate::store::user;

type Shared = Arc<dyn MethodStore>;

macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        mod memory {
            use std::sync::Arc;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(Arc::new(tidegate_methods::MemoryMethodStore::new())).await;
                }
            )*
        }

        mod postgresql {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let name = format!("methods_{:.50}", stringify!($case));
                    let stage = crate::stage::Stage::migrated(&name).await;
                    super::$case(stage.methods()).await;
                }
            )*
        }
    };
}

cases!(
    a_definition_comes_back_as_it_was,
    methods_are_listed_by_name_in_the_order_of_bytes,
    an_insert_is_all_or_none_and_names_all_that_are_taken,
    an_update_needs_the_version_that_it_was_made_from,
    a_rename_onto_a_taken_name_changes_nothing,
    an_update_is_all_or_none,
    a_removal_is_all_or_none,
    a_method_made_anew_has_a_version_that_its_forerunner_never_had,
    a_signature_stays_with_the_version_that_it_was_inferred_from,
    tenants_know_nothing_of_each_other,
    of_parallel_updates_from_one_version_one_is_done,
    of_parallel_inserts_of_one_name_one_is_done,
    parallel_renames_in_opposite_directions_both_end,
);

fn definition(json: &str) -> Definition {
    let mut all = Definition::parse(json.as_bytes(), Limits::default()).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// A definition of this name that selects a number.
fn plain(name: &str) -> Definition {
    definition(&format!(r#"{{"method":"{name}","q":"select 1"}}"#))
}

fn name(name: &str) -> MethodName {
    MethodName::parse(name).unwrap()
}

fn reef() -> DatabaseName {
    DatabaseName::new("reef")
}

fn new(definition: Definition) -> NewMethod {
    NewMethod {
        definition,
        creator: "anna".to_owned(),
    }
}

async fn fill(store: &Shared, names: &[&str]) {
    let methods: Vec<_> = names.iter().map(|name| new(plain(name))).collect();
    let written = store.insert(&reef(), &methods).await.unwrap();
    assert_eq!(written, Written::Done);
}

async fn get(store: &Shared, of: &str) -> Record {
    let mut found = store.get(&reef(), &[name(of)]).await.unwrap();
    found.remove(0)
}

async fn names(store: &Shared) -> Vec<String> {
    let all = store.list(&reef()).await.unwrap();
    let names = all.iter().map(|record| record.definition.name.to_string());
    names.collect()
}

fn revision(of: &Record, definition: Definition) -> Revision {
    Revision {
        name: of.definition.name.clone(),
        version: of.version,
        definition,
        keeps_signature: false,
    }
}

fn versioned(of: &Record) -> Versioned {
    Versioned {
        name: of.definition.name.clone(),
        version: of.version,
    }
}

fn signature() -> Signature {
    Signature {
        parameters: Vec::new(),
        columns: Vec::new(),
    }
}

async fn a_definition_comes_back_as_it_was(store: Shared) {
    let full = definition(
        r#"{"method":"a.b-c","q":"select :b::int, 'ä\"\\', :a","type_hints":{"b":"int","a":"text"},
            "type_formats":{"d":"Y-m-d","c":"\"\\H"},"output_format":"ndjson"}"#,
    );
    store.insert(&reef(), &[new(full.clone())]).await.unwrap();
    let record = get(&store, "a.b-c").await;
    assert_eq!((record.definition, &*record.creator), (full, "anna"));
    assert_eq!(record.signature, None);
    assert!(store.get(&reef(), &[name("b")]).await.unwrap().is_empty());
}

async fn methods_are_listed_by_name_in_the_order_of_bytes(store: Shared) {
    fill(&store, &["b", "a", "B", "_", "a.b", "a-b"]).await;
    assert_eq!(names(&store).await, ["B", "_", "a", "a-b", "a.b", "b"]);
}

async fn an_insert_is_all_or_none_and_names_all_that_are_taken(store: Shared) {
    fill(&store, &["a", "b"]).await;
    let methods = ["c", "b", "d", "a"].map(|name| new(plain(name)));
    let written = store.insert(&reef(), &methods).await.unwrap();
    assert_eq!(written, Written::Taken(vec![name("b"), name("a")]));
    let twice = ["c", "d", "c"].map(|name| new(plain(name)));
    let written = store.insert(&reef(), &twice).await.unwrap();
    assert_eq!(written, Written::Taken(vec![name("c")]));
    assert_eq!(names(&store).await, ["a", "b"]);
}

async fn an_update_needs_the_version_that_it_was_made_from(store: Shared) {
    fill(&store, &["a"]).await;
    let before = get(&store, "a").await;
    let first = revision(&before, definition(r#"{"method":"a","q":"select 2"}"#));
    let second = revision(&before, definition(r#"{"method":"a","q":"select 3"}"#));
    assert_eq!(
        store.update(&reef(), &[first]).await.unwrap(),
        Written::Done
    );
    let late = store.update(&reef(), &[second]).await.unwrap();
    assert_eq!(late, Written::Changed(vec![name("a")]));
    let after = get(&store, "a").await;
    assert_eq!(after.definition.q, "select 2");
    assert_eq!(after.creator, "anna");
    assert_ne!(after.version, before.version);
}

async fn a_rename_onto_a_taken_name_changes_nothing(store: Shared) {
    fill(&store, &["a", "b"]).await;
    let (a, b) = (get(&store, "a").await, get(&store, "b").await);
    let onto = revision(&a, plain("b"));
    let written = store.update(&reef(), &[onto]).await.unwrap();
    assert_eq!(written, Written::Taken(vec![name("b")]));
    assert_eq!(
        (get(&store, "a").await, get(&store, "b").await),
        (a.clone(), b.clone())
    );

    let swap = [revision(&a, plain("b")), revision(&b, plain("a"))];
    assert_eq!(store.update(&reef(), &swap).await.unwrap(), Written::Done);
    let free = revision(&get(&store, "a").await, plain("c"));
    assert_eq!(store.update(&reef(), &[free]).await.unwrap(), Written::Done);
    assert_eq!(names(&store).await, ["b", "c"]);
}

async fn an_update_is_all_or_none(store: Shared) {
    fill(&store, &["a", "b"]).await;
    let (a, b) = (get(&store, "a").await, get(&store, "b").await);
    let mut stale = revision(&b, plain("b"));
    stale.version += 100;
    let written = store
        .update(&reef(), &[revision(&a, plain("c")), stale])
        .await;
    assert_eq!(written.unwrap(), Written::Changed(vec![name("b")]));
    let mut gone = revision(&b, plain("b"));
    gone.name = name("z");
    let written = store
        .update(&reef(), &[revision(&a, plain("c")), gone])
        .await;
    assert_eq!(written.unwrap(), Written::Missing(vec![name("z")]));
    assert_eq!(names(&store).await, ["a", "b"]);
}

async fn a_removal_is_all_or_none(store: Shared) {
    fill(&store, &["a", "b"]).await;
    let (a, b) = (get(&store, "a").await, get(&store, "b").await);
    let missing = Versioned {
        name: name("z"),
        version: 1,
    };
    let written = store
        .remove(&reef(), &[versioned(&a), missing])
        .await
        .unwrap();
    assert_eq!(written, Written::Missing(vec![name("z")]));
    let stale = Versioned {
        version: b.version + 100,
        ..versioned(&b)
    };
    let written = store
        .remove(&reef(), &[versioned(&a), stale])
        .await
        .unwrap();
    assert_eq!(written, Written::Changed(vec![name("b")]));
    let both = [versioned(&a), versioned(&b)];
    assert_eq!(store.remove(&reef(), &both).await.unwrap(), Written::Done);
    assert!(names(&store).await.is_empty());
}

async fn a_method_made_anew_has_a_version_that_its_forerunner_never_had(store: Shared) {
    fill(&store, &["a"]).await;
    let before = versioned(&get(&store, "a").await);
    store
        .remove(&reef(), std::slice::from_ref(&before))
        .await
        .unwrap();
    store.insert(&reef(), &[new(plain("a"))]).await.unwrap();
    let written = store
        .remove(&reef(), std::slice::from_ref(&before))
        .await
        .unwrap();
    assert_eq!(written, Written::Changed(vec![name("a")]));
    assert!(
        !store
            .put_signature(&reef(), &before, &signature())
            .await
            .unwrap()
    );
}

async fn a_signature_stays_with_the_version_that_it_was_inferred_from(store: Shared) {
    fill(&store, &["a"]).await;
    let first = get(&store, "a").await;
    assert!(
        store
            .put_signature(&reef(), &versioned(&first), &signature())
            .await
            .unwrap()
    );
    let known = get(&store, "a").await;
    assert_eq!(
        (known.signature.clone(), known.version),
        (Some(signature()), first.version)
    );

    let mut keeps = revision(&known, plain("b"));
    keeps.keeps_signature = true;
    store.update(&reef(), &[keeps]).await.unwrap();
    let renamed = get(&store, "b").await;
    assert_eq!(renamed.signature, Some(signature()));
    store
        .update(&reef(), &[revision(&renamed, plain("b"))])
        .await
        .unwrap();
    assert_eq!(get(&store, "b").await.signature, None);
    assert!(
        !store
            .put_signature(&reef(), &versioned(&renamed), &signature())
            .await
            .unwrap()
    );
    assert_eq!(get(&store, "b").await.signature, None);
}

async fn tenants_know_nothing_of_each_other(store: Shared) {
    fill(&store, &["a"]).await;
    let lake = DatabaseName::new("lake");
    assert!(store.list(&lake).await.unwrap().is_empty());
    assert!(store.get(&lake, &[name("a")]).await.unwrap().is_empty());
    let of_reef = versioned(&get(&store, "a").await);
    let written = store.remove(&lake, &[of_reef]).await.unwrap();
    assert_eq!(written, Written::Missing(vec![name("a")]));
    assert_eq!(
        store.insert(&lake, &[new(plain("a"))]).await.unwrap(),
        Written::Done
    );
    store.remove_tenant(&lake).await.unwrap();
    assert!(store.list(&lake).await.unwrap().is_empty());
    assert_eq!(names(&store).await, ["a"]);
}

async fn of_parallel_updates_from_one_version_one_is_done(store: Shared) {
    fill(&store, &["a"]).await;
    let before = get(&store, "a").await;
    let mut tasks = JoinSet::new();
    for number in 0..32 {
        let (store, before) = (Arc::clone(&store), before.clone());
        let q = format!(r#"{{"method":"a","q":"select {number}"}}"#);
        tasks.spawn(async move {
            let revision = revision(&before, definition(&q));
            store.update(&reef(), &[revision]).await.unwrap()
        });
    }
    let outcomes = tasks.join_all().await;
    let done = outcomes.iter().filter(|outcome| **outcome == Written::Done);
    assert_eq!(done.count(), 1);
    let late = outcomes.iter().filter(|outcome| **outcome != Written::Done);
    assert!(
        late.into_iter()
            .all(|outcome| *outcome == Written::Changed(vec![name("a")]))
    );
}

async fn of_parallel_inserts_of_one_name_one_is_done(store: Shared) {
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let store = Arc::clone(&store);
        tasks.spawn(async move { store.insert(&reef(), &[new(plain("a"))]).await.unwrap() });
    }
    let outcomes = tasks.join_all().await;
    let done = outcomes.iter().filter(|outcome| **outcome == Written::Done);
    assert_eq!(done.count(), 1);
}

async fn parallel_renames_in_opposite_directions_both_end(store: Shared) {
    fill(&store, &["a", "b"]).await;
    let (a, b) = (get(&store, "a").await, get(&store, "b").await);
    let swap = [revision(&a, plain("b")), revision(&b, plain("a"))];
    let back = [revision(&b, plain("a")), revision(&a, plain("b"))];
    let reef = reef();
    let both = tokio::join!(store.update(&reef, &swap), store.update(&reef, &back));
    let outcomes = [both.0.unwrap(), both.1.unwrap()];
    assert!(outcomes.contains(&Written::Done), "{outcomes:?}");
    assert_eq!(names(&store).await, ["a", "b"]);
}

#[tokio::test]
async fn every_change_of_a_method_is_told_to_the_other_nodes() {
    let stage = Stage::migrated("methods_notices").await;
    let store = stage.methods();
    let mut notices = listening(&stage).await;
    fill(&store, &["a", "b", "c"]).await;
    let a = get(&store, "a").await;
    for _ in 0..2 {
        // What is known already is not told again.
        let kept = store
            .put_signature(&reef(), &versioned(&a), &signature())
            .await;
        assert!(kept.unwrap());
    }
    store
        .update(&reef(), &[revision(&a, plain("d"))])
        .await
        .unwrap();
    let taken = revision(&get(&store, "b").await, plain("c"));
    store.update(&reef(), &[taken]).await.unwrap();
    let b = versioned(&get(&store, "b").await);
    store.remove(&reef(), &[b]).await.unwrap();
    store.remove_tenant(&reef()).await.unwrap();
    let method = |name: &str| Change::Method {
        database: "reef".to_owned(),
        name: name.to_owned(),
    };
    let expected = [
        method("a"),
        method("a"),
        method("b"),
        Change::Methods("reef".to_owned()),
    ];
    for expected in expected {
        let heard = loop {
            match soon(notices.recv()).await.unwrap() {
                Notice::Said(text) if &*text == "probe" => {}
                Notice::Said(text) => break Change::parse(&text),
                Notice::Listening => {}
            }
        };
        assert_eq!(heard, Some(expected));
    }
}

#[tokio::test]
async fn another_node_sees_what_this_one_wrote() {
    let stage = Stage::migrated("methods_nodes").await;
    fill(&stage.methods(), &["a"]).await;
    let other: Shared = Arc::new(PgMethodStore::new(stage.another()));
    let a = get(&other, "a").await;
    other
        .update(&reef(), &[revision(&a, plain("b"))])
        .await
        .unwrap();
    assert_eq!(names(&stage.methods()).await, ["b"]);
}

#[tokio::test]
async fn the_methods_of_a_user_who_is_deleted_become_the_owners() {
    let stage = Stage::migrated("methods_heir").await;
    let store = stage.methods();
    stage
        .store()
        .insert_user(&user("reef", "anna"))
        .await
        .unwrap();
    fill(&store, &["a"]).await;
    let (anna, at) = (UserKey::new("reef", "anna"), Timestamp::from_seconds(1_000));
    assert!(stage.store().delete_user(&anna, at).await.unwrap());
    assert_eq!(get(&store, "a").await.creator, "reef");
}
