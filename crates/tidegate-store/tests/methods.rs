//! Tests of the behaviour that every store of methods must have, with the memory store and with
//! PostgreSQL.

use std::sync::Arc;

use tidegate_identity::{Timestamp, UserKey};
use tidegate_methods::store::{NewMethod, Revision};
use tidegate_methods::{
    Definition, Limits, MethodName, MethodStore, Record, Signature, Versioned, WriteOutcome,
};
use tidegate_service::Notification;
use tidegate_sql::DatabaseName;
use tidegate_store::{Change, PgMethodStore};
use tokio::task::JoinSet;

use tidegate_testkit::soon;

use crate::fixture::{Fixture, listening};
use crate::store::user;

type Shared = Arc<dyn MethodStore>;

/// More writers than the pool has connections, but few enough for its deadline on a busy machine.
const PARALLEL: u32 = 16;

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
                    let fixture = crate::fixture::Fixture::migrated(&name).await;
                    super::$case(fixture.methods()).await;
                }
            )*
        }
    };
}

cases!(
    a_definition_comes_back_as_it_was,
    methods_are_listed_by_name_in_the_order_of_bytes,
    an_insert_is_all_or_none_and_names_all_that_are_taken,
    an_update_is_made_from_what_is_there,
    a_rename_onto_a_taken_name_changes_nothing,
    an_update_is_all_or_none,
    an_update_that_is_refused_changes_nothing,
    a_removal_is_all_or_none,
    a_recreated_method_has_a_new_version,
    a_signature_stays_with_the_version_that_it_was_inferred_from,
    tenants_know_nothing_of_each_other,
    parallel_updates_take_turns,
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
        by_owner: false,
    }
}

async fn fill(store: &Shared, names: &[&str]) {
    let methods: Vec<_> = names.iter().map(|name| new(plain(name))).collect();
    let written = store.insert(&reef(), &methods).await.unwrap();
    assert_eq!(written, WriteOutcome::Done);
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

/// Changes definitions, with any author.
async fn update(store: &Shared, changes: &[(&str, Definition)]) -> WriteOutcome {
    let names: Vec<_> = changes.iter().map(|(of, _)| name(of)).collect();
    let revise = |record: &Record| {
        let change = changes
            .iter()
            .find(|(of, _)| *of == record.definition.name.as_str());
        change.map(|(_, definition)| revision(definition.clone()))
    };
    store.update(&reef(), &names, &revise).await.unwrap()
}

/// Removes methods, with any author.
async fn remove(store: &Shared, tenant: &DatabaseName, of: &[&str]) -> WriteOutcome {
    let names: Vec<_> = of.iter().copied().map(name).collect();
    store.remove(tenant, &names, &|_| true).await.unwrap()
}

fn revision(definition: Definition) -> Revision {
    Revision {
        definition,
        keeps_signature: false,
        by_owner: false,
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
    assert!(!record.by_owner);
    let owned = NewMethod {
        by_owner: true,
        ..new(plain("owned"))
    };
    store.insert(&reef(), &[owned]).await.unwrap();
    assert!(get(&store, "owned").await.by_owner);
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
    assert_eq!(written, WriteOutcome::Taken(vec![name("b"), name("a")]));
    let twice = ["c", "d", "c"].map(|name| new(plain(name)));
    let written = store.insert(&reef(), &twice).await.unwrap();
    assert_eq!(written, WriteOutcome::Taken(vec![name("c")]));
    assert_eq!(names(&store).await, ["a", "b"]);
}

async fn an_update_is_made_from_what_is_there(store: Shared) {
    fill(&store, &["a"]).await;
    let before = get(&store, "a").await;
    let next = |record: &Record| {
        let mut definition = record.definition.clone();
        definition.q.push_str(" + 1");
        Some(revision(definition))
    };
    for expected in ["select 1 + 1", "select 1 + 1 + 1"] {
        let written = store.update(&reef(), &[name("a")], &next).await.unwrap();
        assert_eq!(written, WriteOutcome::Done);
        assert_eq!(get(&store, "a").await.definition.q, expected);
    }
    let after = get(&store, "a").await;
    assert_eq!(after.creator, "anna");
    assert_ne!(after.version, before.version);
}

async fn a_rename_onto_a_taken_name_changes_nothing(store: Shared) {
    fill(&store, &["a", "b"]).await;
    let (a, b) = (get(&store, "a").await, get(&store, "b").await);
    let written = update(&store, &[("a", plain("b"))]).await;
    assert_eq!(written, WriteOutcome::Taken(vec![name("b")]));
    assert_eq!((get(&store, "a").await, get(&store, "b").await), (a, b));

    let swap = [("a", plain("b")), ("b", plain("a"))];
    assert_eq!(update(&store, &swap).await, WriteOutcome::Done);
    assert_eq!(
        update(&store, &[("a", plain("c"))]).await,
        WriteOutcome::Done
    );
    assert_eq!(names(&store).await, ["b", "c"]);
}

async fn an_update_is_all_or_none(store: Shared) {
    fill(&store, &["a", "b"]).await;
    let changes = [("a", plain("c")), ("z", plain("z"))];
    let written = update(&store, &changes).await;
    assert_eq!(written, WriteOutcome::Missing(vec![name("z")]));
    assert_eq!(names(&store).await, ["a", "b"]);
}

async fn an_update_that_is_refused_changes_nothing(store: Shared) {
    fill(&store, &["a", "b"]).await;
    let only_a = |record: &Record| {
        let is_a = record.definition.name.as_str() == "a";
        is_a.then(|| revision(plain("c")))
    };
    let both = [name("a"), name("b")];
    let written = store.update(&reef(), &both, &only_a).await.unwrap();
    assert_eq!(written, WriteOutcome::Refused(vec![name("b")]));
    assert_eq!(names(&store).await, ["a", "b"]);
}

async fn a_removal_is_all_or_none(store: Shared) {
    fill(&store, &["a", "b"]).await;
    let written = remove(&store, &reef(), &["a", "z"]).await;
    assert_eq!(written, WriteOutcome::Missing(vec![name("z")]));
    let only_a = |record: &Record| record.definition.name.as_str() == "a";
    let both = [name("a"), name("b")];
    let written = store.remove(&reef(), &both, &only_a).await.unwrap();
    assert_eq!(written, WriteOutcome::Refused(vec![name("b")]));
    assert_eq!(names(&store).await, ["a", "b"]);
    assert_eq!(
        remove(&store, &reef(), &["a", "b"]).await,
        WriteOutcome::Done
    );
    assert!(names(&store).await.is_empty());
}

async fn a_recreated_method_has_a_new_version(store: Shared) {
    fill(&store, &["a"]).await;
    let before = versioned(&get(&store, "a").await);
    assert_eq!(remove(&store, &reef(), &["a"]).await, WriteOutcome::Done);
    store.insert(&reef(), &[new(plain("a"))]).await.unwrap();
    assert_ne!(versioned(&get(&store, "a").await), before);
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

    let keeps = |_: &Record| {
        Some(Revision {
            definition: plain("b"),
            keeps_signature: true,
            by_owner: true,
        })
    };
    let written = store.update(&reef(), &[name("a")], &keeps).await;
    assert_eq!(written.unwrap(), WriteOutcome::Done);
    let renamed = get(&store, "b").await;
    assert_eq!(renamed.signature, Some(signature()));
    assert!(renamed.by_owner && !known.by_owner);
    assert_eq!(
        update(&store, &[("b", plain("b"))]).await,
        WriteOutcome::Done
    );
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
    let written = remove(&store, &lake, &["a"]).await;
    assert_eq!(written, WriteOutcome::Missing(vec![name("a")]));
    assert_eq!(
        store.insert(&lake, &[new(plain("a"))]).await.unwrap(),
        WriteOutcome::Done
    );
    store.remove_tenant(&lake).await.unwrap();
    assert!(store.list(&lake).await.unwrap().is_empty());
    assert_eq!(names(&store).await, ["a"]);
}

async fn parallel_updates_take_turns(store: Shared) {
    fill(&store, &["a"]).await;
    let mut tasks = JoinSet::new();
    for number in 0..PARALLEL {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let revise = move |record: &Record| {
                let mut definition = record.definition.clone();
                definition.q = format!("{}, {number}", definition.q);
                Some(revision(definition))
            };
            store.update(&reef(), &[name("a")], &revise).await.unwrap()
        });
    }
    let outcomes = tasks.join_all().await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| *outcome == WriteOutcome::Done)
    );
    let q = get(&store, "a").await.definition.q;
    let mut numbers: Vec<u32> = q
        .split(", ")
        .skip(1)
        .map(|number| number.parse().unwrap())
        .collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..PARALLEL), "{q}");
}

async fn of_parallel_inserts_of_one_name_one_is_done(store: Shared) {
    let mut tasks = JoinSet::new();
    for _ in 0..PARALLEL {
        let store = Arc::clone(&store);
        tasks.spawn(async move { store.insert(&reef(), &[new(plain("a"))]).await.unwrap() });
    }
    let outcomes = tasks.join_all().await;
    let done = outcomes
        .iter()
        .filter(|outcome| **outcome == WriteOutcome::Done);
    assert_eq!(done.count(), 1);
}

async fn parallel_renames_in_opposite_directions_both_end(store: Shared) {
    fill(&store, &["a", "b"]).await;
    let swap = [("a", plain("b")), ("b", plain("a"))];
    let back = [("b", plain("a")), ("a", plain("b"))];
    let both = tokio::join!(update(&store, &swap), update(&store, &back));
    assert_eq!(both, (WriteOutcome::Done, WriteOutcome::Done));
    assert_eq!(names(&store).await, ["a", "b"]);
}

#[tokio::test]
async fn every_change_of_a_method_notifies_the_other_nodes() {
    let fixture = Fixture::migrated("methods_notices").await;
    let store = fixture.methods();
    let mut notifications = listening(&fixture).await;
    fill(&store, &["a", "b", "c"]).await;
    let a = get(&store, "a").await;
    for _ in 0..2 {
        // Storing an equal signature causes no notification.
        let kept = store
            .put_signature(&reef(), &versioned(&a), &signature())
            .await;
        assert!(kept.unwrap());
    }
    update(&store, &[("a", plain("d"))]).await;
    update(&store, &[("b", plain("c"))]).await;
    remove(&store, &reef(), &["b"]).await;
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
        let received = loop {
            match soon(notifications.recv()).await.unwrap() {
                Notification::Received(text) if &*text == "probe" => {}
                Notification::Received(text) => break Change::parse(&text),
                Notification::Listening => {}
            }
        };
        assert_eq!(received, Some(expected));
    }
}

#[tokio::test]
async fn another_node_sees_what_this_one_wrote() {
    let fixture = Fixture::migrated("methods_nodes").await;
    fill(&fixture.methods(), &["a"]).await;
    let other: Shared = Arc::new(PgMethodStore::new(fixture.another()));
    assert_eq!(
        update(&other, &[("a", plain("b"))]).await,
        WriteOutcome::Done
    );
    assert_eq!(names(&fixture.methods()).await, ["b"]);
}

#[tokio::test]
async fn the_methods_of_a_deleted_user_pass_to_the_owner() {
    let fixture = Fixture::migrated("methods_heir").await;
    let store = fixture.methods();
    fixture
        .store()
        .insert_user(&user("reef", "anna"))
        .await
        .unwrap();
    fill(&store, &["a"]).await;
    let (anna, at) = (UserKey::new("reef", "anna"), Timestamp::from_seconds(1_000));
    assert!(fixture.store().delete_user(&anna, at).await.unwrap());
    let inherited = get(&store, "a").await;
    assert_eq!(inherited.creator, "reef");
    assert!(!inherited.by_owner, "the owner has not written it");
}
