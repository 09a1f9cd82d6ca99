//! Tests of the registry: its cache, changes by several clients, and who may change a method.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_methods::store::NewMethod;
use tidegate_methods::{
    Caller, Error, Limits, MemoryMethodStore, MethodStore, Patch, Registry, Signature,
};
use tidegate_sql::DatabaseName;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::counting_store::CountingStore;
use crate::fixture::{definition, name, plain, reef};

pub(crate) const OWNER: Caller<'_> = Caller {
    user: "reef",
    owner: true,
};

pub(crate) const ANNA: Caller<'_> = Caller {
    user: "anna",
    owner: false,
};

const BEN: Caller<'_> = Caller {
    user: "ben",
    owner: false,
};

pub(crate) fn patch(body: &str) -> Patch {
    Patch::parse(body.as_bytes(), Limits::default()).unwrap()
}

async fn registry(names: &[&str]) -> (Arc<CountingStore>, Registry) {
    let store = Arc::new(CountingStore::default());
    let registry = Registry::new(store.clone());
    let definitions = names.iter().map(|name| plain(name)).collect();
    registry.create(&reef(), ANNA, definitions).await.unwrap();
    (store, registry)
}

async fn q(registry: &Registry, name: &str) -> String {
    let method = registry.lookup(&reef(), name).await.unwrap().unwrap();
    method.definition().q.clone()
}

#[tokio::test]
async fn a_cached_lookup_does_not_use_the_store() {
    let (store, registry) = registry(&["a", "b"]).await;
    assert!(registry.cached(&reef(), "a").is_none());
    let first = registry.lookup(&reef(), "a").await.unwrap().unwrap();
    let again = registry.lookup(&reef(), "a").await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    assert!(registry.cached(&reef(), "a").is_some());
    assert_eq!(store.fetched.load(Ordering::SeqCst), 1);

    let both = registry
        .lookup_all(&reef(), &["b", "a", "none", "b"])
        .await
        .unwrap();
    let found = both.iter().map(|m| m.as_ref().map(|m| m.name().as_str()));
    assert_eq!(
        found.collect::<Vec<_>>(),
        [Some("b"), Some("a"), None, Some("b")]
    );
    assert_eq!(store.fetched.load(Ordering::SeqCst), 2);
    registry.lookup_all(&reef(), &["b", "a"]).await.unwrap();
    assert_eq!(store.fetched.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_name_that_is_none_is_not_looked_for() {
    let (store, registry) = registry(&["a"]).await;
    for name in ["", "1", "a b", "a'; drop table x"] {
        assert!(registry.lookup(&reef(), name).await.unwrap().is_none());
    }
    assert_eq!(store.fetched.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_method_can_be_called_as_soon_as_another_node_has_defined_it() {
    let (store, here) = registry(&["a"]).await;
    let there = Registry::new(store);
    assert!(here.lookup(&reef(), "b").await.unwrap().is_none());
    there.create(&reef(), BEN, vec![plain("b")]).await.unwrap();
    assert!(here.lookup(&reef(), "b").await.unwrap().is_some());
}

#[tokio::test]
async fn another_nodes_change_is_seen_upon_its_notice() {
    let (store, here) = registry(&["a", "b"]).await;
    let there = Registry::new(store);
    assert_eq!(q(&here, "a").await, "select 1");
    there
        .patch(&reef(), OWNER, &["a"], &patch(r#"{"q":"select 2"}"#))
        .await
        .unwrap();
    assert_eq!(q(&here, "a").await, "select 1");
    here.forget(&DatabaseName::new("lake"), &["a"]);
    here.forget(&reef(), &["b"]);
    assert_eq!(q(&here, "a").await, "select 1");
    here.forget(&reef(), &["a"]);
    assert_eq!(q(&here, "a").await, "select 2");

    there
        .patch(&reef(), OWNER, &["a"], &patch(r#"{"q":"select 3"}"#))
        .await
        .unwrap();
    here.forget_tenant(&reef());
    assert_eq!(q(&here, "a").await, "select 3");
    there.remove(&reef(), OWNER, &["a"]).await.unwrap();
    here.forget_all();
    assert!(here.lookup(&reef(), "a").await.unwrap().is_none());
}

#[tokio::test]
async fn what_was_read_before_a_notice_is_not_kept_after_it() {
    let inner = CountingStore::default();
    let held = CountingStore {
        hold: Some((Notify::new(), Notify::new())),
        ..inner
    };
    held.inner
        .insert(
            &reef(),
            &[NewMethod {
                definition: plain("a"),
                creator: "anna".to_owned(),
                by_owner: false,
            }],
        )
        .await
        .unwrap();
    let store = Arc::new(held);
    let registry = Arc::new(Registry::new(store.clone()));
    let slow = tokio::spawn({
        let registry = Arc::clone(&registry);
        async move { registry.lookup(&reef(), "a").await.unwrap().is_some() }
    });
    let (read, go) = store.hold.as_ref().unwrap();
    read.notified().await;
    registry.forget(&reef(), &["a"]);
    go.notify_one();
    assert!(slow.await.unwrap());
    assert!(registry.cached(&reef(), "a").is_none());
}

#[tokio::test]
async fn no_more_is_kept_at_hand_than_the_capacity() {
    let store: Arc<MemoryMethodStore> = Arc::default();
    // A short method takes a little more than 1 KiB, so three of them fit.
    let registry = Registry::with_capacity(store, 3 << 10 | 512);
    let lake = DatabaseName::new("lake");
    for tenant in [&reef(), &lake] {
        let all = ["a", "b", "c", "d"].map(plain).to_vec();
        registry.create(tenant, ANNA, all).await.unwrap();
    }
    let cached = |tenant: &DatabaseName| {
        let names = ["a", "b", "c", "d"].iter();
        names
            .filter(|name| registry.cached(tenant, name).is_some())
            .count()
    };
    registry.lookup_all(&reef(), &["a", "b"]).await.unwrap();
    registry.lookup_all(&lake, &["a"]).await.unwrap();
    assert_eq!((cached(&reef()), cached(&lake)), (2, 1));
    registry.lookup_all(&lake, &["b", "c"]).await.unwrap();
    assert_eq!((cached(&reef()), cached(&lake)), (0, 3));
    registry.lookup_all(&lake, &["d"]).await.unwrap();
    assert_eq!((cached(&reef()), cached(&lake)), (0, 1));
    let all = registry
        .lookup_all(&reef(), &["a", "b", "c", "d"])
        .await
        .unwrap();
    assert!(all.iter().all(Option::is_some));
    assert_eq!((cached(&reef()), cached(&lake)), (0, 1));

    let long = definition(&format!(
        r#"{{"method":"long","q":"select '{}'"}}"#,
        "x".repeat(1 << 10)
    ));
    registry.create(&lake, ANNA, vec![long]).await.unwrap();
    assert!(registry.lookup(&lake, "long").await.unwrap().is_some());
    assert!(
        registry.cached(&lake, "long").is_none(),
        "its text counts, and is too long for the rest"
    );
}

#[tokio::test]
async fn definitions_are_made_all_or_none() {
    let (_, registry) = registry(&["a"]).await;
    let several = ["b", "a"].map(plain).to_vec();
    let error = registry.create(&reef(), BEN, several).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "a method of this name exists already: `a`"
    );
    let twice = ["b", "c", "b"].map(plain).to_vec();
    let error = registry.create(&reef(), BEN, twice).await.unwrap_err();
    assert!(matches!(error, Error::AlreadyExists(names) if names == [name("b")]));
    assert!(registry.lookup(&reef(), "b").await.unwrap().is_none());

    let mut bad = plain("d");
    bad.q = "commit".to_owned();
    let error = registry
        .create(&reef(), BEN, vec![plain("b"), bad])
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Statement { index: Some(1), .. }));
    assert_eq!(registry.list(&reef()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn methods_are_found_in_the_order_asked_or_the_missing_are_named() {
    let (_, registry) = registry(&["a", "b"]).await;
    let found = registry.find(&reef(), &["b", "a"]).await.unwrap();
    let names: Vec<_> = found.iter().map(|m| m.name().as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    let error = registry
        .find(&reef(), &["b", "x", "no name"])
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "method not found: `x`, `no name`");
}

#[tokio::test]
async fn a_rename_is_seen_under_both_names() {
    let (_, registry) = registry(&["a"]).await;
    q(&registry, "a").await;
    let rename = patch(r#"{"method":"b"}"#);
    let names = registry
        .patch(&reef(), ANNA, &["a"], &rename)
        .await
        .unwrap();
    assert_eq!(names, [name("b")]);
    assert!(registry.lookup(&reef(), "a").await.unwrap().is_none());
    assert_eq!(q(&registry, "b").await, "select 1");
    let same = registry
        .patch(&reef(), ANNA, &["b"], &rename)
        .await
        .unwrap();
    assert_eq!(same, [name("b")]);
}

#[tokio::test]
async fn a_rename_onto_another_method_is_refused() {
    let (_, registry) = registry(&["a", "b"]).await;
    let rename = patch(r#"{"method":"b","q":"select 9"}"#);
    let error = registry
        .patch(&reef(), OWNER, &["a"], &rename)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::AlreadyExists(names) if names == [name("b")]));
    assert_eq!(q(&registry, "a").await, "select 1");
    let error = registry
        .patch(&reef(), OWNER, &["a", "b"], &patch(r#"{"method":"c"}"#))
        .await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "`method`: one new name for 2 methods"
    );
}

#[tokio::test]
async fn several_methods_take_one_patch() {
    let (_, registry) = registry(&["a", "b"]).await;
    let change = patch(r#"{"q":"select 2"}"#);
    let names = registry
        .patch(&reef(), ANNA, &["b", "a", "b"], &change)
        .await;
    assert_eq!(names.unwrap(), [name("b"), name("a")]);
    for name in ["a", "b"] {
        assert_eq!(q(&registry, name).await, "select 2");
    }
}

#[tokio::test]
async fn who_may_change_a_method() {
    for (who, creator, may) in [
        (OWNER, "reef", true),
        (OWNER, "anna", true),
        (ANNA, "anna", true),
        (ANNA, "ben", false),
        (ANNA, "reef", false),
        (BEN, "anna", false),
        (ANNA, "Anna", false),
    ] {
        assert_eq!(who.may_change(creator), may, "{who:?} {creator}");
    }
    let (_, registry) = registry(&["a"]).await;
    registry
        .create(&reef(), BEN, vec![plain("b")])
        .await
        .unwrap();
    let change = patch(r#"{"q":"select 2"}"#);
    let error = registry
        .patch(&reef(), ANNA, &["a", "b"], &change)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotAllowed(names) if names == [name("b")]));
    assert_eq!(q(&registry, "a").await, "select 1");
    let error = registry
        .remove(&reef(), BEN, &["a", "b"])
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotAllowed(names) if names == [name("a")]));
    let error = registry
        .remove(&reef(), BEN, &["b", "z"])
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotFound(names) if names == ["z"]));
    registry.remove(&reef(), OWNER, &["a", "b"]).await.unwrap();
    assert!(registry.list(&reef()).await.unwrap().is_empty());
    assert!(registry.lookup(&reef(), "a").await.unwrap().is_none());
}

#[tokio::test]
async fn a_signature_is_cleared_by_what_it_depends_on_and_nothing_else() {
    let store: Arc<MemoryMethodStore> = Arc::default();
    let registry = Registry::new(store);
    let body = r#"{"method":"a","q":"select :x","type_hints":{"x":"int"}}"#;
    registry
        .create(&reef(), ANNA, vec![definition(body)])
        .await
        .unwrap();
    let signature = Signature {
        parameters: Vec::new(),
        columns: Vec::new(),
    };
    for (change, stays) in [
        ("{}", true),
        (r#"{"q":"select :x"}"#, true),
        (r#"{"type_hints":{"x":"int"}}"#, true),
        (r#"{"type_formats":{"x":"Y"},"output_format":"csv"}"#, true),
        (r#"{"q":"select :x + 1"}"#, false),
        (r#"{"type_hints":{"x":"text"}}"#, false),
        (r#"{"type_hints":null}"#, false),
    ] {
        let method = registry.lookup(&reef(), "a").await.unwrap().unwrap();
        assert!(registry.record(&reef(), &method, &signature).await.unwrap());
        let kept = registry.lookup(&reef(), "a").await.unwrap().unwrap();
        assert_eq!(kept.signature(), Some(&signature));
        registry
            .patch(&reef(), ANNA, &["a"], &patch(change))
            .await
            .unwrap();
        let after = registry.lookup(&reef(), "a").await.unwrap().unwrap();
        assert_eq!(after.signature().is_some(), stays, "{change}");
    }
}

#[tokio::test]
async fn a_signature_of_a_statement_that_has_changed_is_not_kept() {
    let (_, registry) = registry(&["a"]).await;
    let described = registry.lookup(&reef(), "a").await.unwrap().unwrap();
    registry
        .patch(&reef(), ANNA, &["a"], &patch(r#"{"q":"select 2"}"#))
        .await
        .unwrap();
    let signature = Signature {
        parameters: Vec::new(),
        columns: Vec::new(),
    };
    assert!(
        !registry
            .record(&reef(), &described, &signature)
            .await
            .unwrap()
    );
    assert!(
        registry.find(&reef(), &["a"]).await.unwrap()[0]
            .signature()
            .is_none()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clients_that_patch_different_members_at_once_all_succeed() {
    let (_, registry) = registry(&["a"]).await;
    let registry = Arc::new(registry);
    for round in 0..20 {
        let mut tasks = JoinSet::new();
        for body in [
            format!(r#"{{"q":"select {round}"}}"#),
            format!(r#"{{"type_hints":{{"x":"t{round}"}}}}"#),
            format!(r#"{{"type_formats":{{"x":"f{round}"}}}}"#),
        ] {
            let registry = Arc::clone(&registry);
            tasks.spawn(async move {
                registry
                    .patch(&reef(), ANNA, &["a"], &patch(&body))
                    .await
                    .unwrap();
            });
        }
        tasks.join_all().await;
        let method = registry.lookup(&reef(), "a").await.unwrap().unwrap();
        let after = method.definition();
        assert_eq!(after.q, format!("select {round}"));
        assert_eq!(after.type_hints[0].1, format!("t{round}"));
        assert_eq!(after.type_formats[0].1, format!("f{round}"));
    }
}

#[tokio::test]
async fn a_dropped_tenant_has_no_methods() {
    let (_, registry) = registry(&["a"]).await;
    q(&registry, "a").await;
    registry.remove_tenant(&reef()).await.unwrap();
    assert!(registry.lookup(&reef(), "a").await.unwrap().is_none());
    assert!(registry.list(&reef()).await.unwrap().is_empty());
}
