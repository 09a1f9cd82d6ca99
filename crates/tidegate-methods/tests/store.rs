//! What every store must do, shown by the one in memory.

use std::sync::Arc;

use tidegate_methods::store::{NewMethod, Revision, Versioned};
use tidegate_methods::{Definition, MemoryMethodStore, MethodStore, Record, Signature, Written};
use tidegate_sql::DatabaseName;
use tokio::task::JoinSet;

use crate::fixture::{definition, name, plain, reef};

fn new(definition: Definition) -> NewMethod {
    NewMethod {
        definition,
        creator: "anna".to_owned(),
    }
}

async fn store(names: &[&str]) -> MemoryMethodStore {
    let store = MemoryMethodStore::new();
    let methods: Vec<_> = names.iter().map(|name| new(plain(name))).collect();
    let written = store.insert(&reef(), &methods).await.unwrap();
    assert_eq!(written, Written::Done);
    store
}

async fn get(store: &MemoryMethodStore, of: &str) -> Record {
    let mut found = store.get(&reef(), &[name(of)]).await.unwrap();
    found.remove(0)
}

async fn names(store: &MemoryMethodStore) -> Vec<String> {
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

#[tokio::test]
async fn methods_are_listed_by_name_in_the_order_of_bytes() {
    let store = store(&["b", "a", "B", "_", "a.b", "a-b"]).await;
    assert_eq!(names(&store).await, ["B", "_", "a", "a-b", "a.b", "b"]);
}

#[tokio::test]
async fn an_insert_is_all_or_none_and_names_all_that_are_taken() {
    let store = store(&["a", "b"]).await;
    let methods = ["c", "b", "d", "a"].map(|name| new(plain(name)));
    let written = store.insert(&reef(), &methods).await.unwrap();
    assert_eq!(written, Written::Taken(vec![name("b"), name("a")]));
    let twice = ["c", "d", "c"].map(|name| new(plain(name)));
    let written = store.insert(&reef(), &twice).await.unwrap();
    assert_eq!(written, Written::Taken(vec![name("c")]));
    assert_eq!(names(&store).await, ["a", "b"]);
}

#[tokio::test]
async fn an_update_needs_the_version_that_it_was_made_from() {
    let store = store(&["a"]).await;
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

#[tokio::test]
async fn a_rename_onto_a_taken_name_changes_nothing() {
    let store = store(&["a", "b"]).await;
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

#[tokio::test]
async fn an_update_is_all_or_none() {
    let store = store(&["a", "b"]).await;
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

#[tokio::test]
async fn a_removal_is_all_or_none() {
    let store = store(&["a", "b"]).await;
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

#[tokio::test]
async fn a_method_made_anew_has_a_version_that_its_forerunner_never_had() {
    let store = store(&["a"]).await;
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

#[tokio::test]
async fn a_signature_stays_with_the_version_that_it_was_inferred_from() {
    let store = store(&["a"]).await;
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

#[tokio::test]
async fn tenants_know_nothing_of_each_other() {
    let store = store(&["a"]).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_parallel_updates_from_one_version_one_is_done() {
    let store = Arc::new(store(&["a"]).await);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_parallel_inserts_of_one_name_one_is_done() {
    let store = Arc::new(MemoryMethodStore::new());
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let store = Arc::clone(&store);
        tasks.spawn(async move { store.insert(&reef(), &[new(plain("a"))]).await.unwrap() });
    }
    let outcomes = tasks.join_all().await;
    let done = outcomes.iter().filter(|outcome| **outcome == Written::Done);
    assert_eq!(done.count(), 1);
}
