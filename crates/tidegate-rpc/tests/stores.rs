//! Tests with a store of methods that is unavailable or broken.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_methods::store::{MayRemove, NewMethod, Revise, StoreResult};
use tidegate_methods::{
    MethodName, MethodStore, Record, Registry, Signature, StoreError, Versioned, WriteOutcome,
};
use tidegate_rpc::{Dispatcher, Error};
use tidegate_sql::DatabaseName;

use crate::fixture::{Fixture, fixture};

/// A store that fails in every call. The flag tells whether a retry may succeed.
struct Failing(bool);

impl Failing {
    fn fail<T>(&self) -> StoreResult<T> {
        let secret = "10.0.0.7 refused the connection".into();
        let error = if self.0 {
            StoreError::Unavailable(secret)
        } else {
            StoreError::Failed(secret)
        };
        Err(error)
    }
}

#[async_trait]
impl MethodStore for Failing {
    async fn get(&self, _: &DatabaseName, _: &[MethodName]) -> StoreResult<Vec<Record>> {
        self.fail()
    }

    async fn list(&self, _: &DatabaseName) -> StoreResult<Vec<Record>> {
        self.fail()
    }

    async fn insert(&self, _: &DatabaseName, _: &[NewMethod]) -> StoreResult<WriteOutcome> {
        self.fail()
    }

    async fn update(
        &self,
        _: &DatabaseName,
        _: &[MethodName],
        _: &Revise<'_>,
    ) -> StoreResult<WriteOutcome> {
        self.fail()
    }

    async fn remove(
        &self,
        _: &DatabaseName,
        _: &[MethodName],
        _: &MayRemove<'_>,
    ) -> StoreResult<WriteOutcome> {
        self.fail()
    }

    async fn put_signature(
        &self,
        _: &DatabaseName,
        _: &Versioned,
        _: &Signature,
    ) -> StoreResult<bool> {
        self.fail()
    }

    async fn remove_tenant(&self, _: &DatabaseName) -> StoreResult<()> {
        self.fail()
    }
}

async fn without_store(may_work_later: bool) -> Fixture {
    let mut fixture = fixture().await;
    fixture.registry = Arc::new(Registry::new(Arc::new(Failing(may_work_later))));
    let (registry, executor) = (fixture.registry.clone(), fixture.executor.clone());
    fixture.dispatcher = Dispatcher::new(registry, Arc::new(executor));
    fixture
}

const CALL: &str = r#"{"jsonrpc":"2.0","method":"date","id":1}"#;

#[tokio::test]
async fn a_store_that_is_away_fails_calls_that_may_be_repeated() {
    let fixture = without_store(true).await;
    let expected = r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error","data":{"message":"the method could not be looked up","retryable":true}},"id":1}"#;
    let (response, outcome) = fixture.outcome(CALL).await;
    assert_eq!(response, expected);
    assert!(matches!(outcome.errors[..], [Error::Registry(_)]));
    let (response, outcome) = fixture.outcome(&format!("[{CALL},{CALL}]")).await;
    assert_eq!(response, format!("[{expected},{expected}]"));
    assert!(matches!(outcome.errors[..], [Error::Registry(_)]));
    assert_eq!(fixture.dry(CALL).await, expected);
}

#[tokio::test]
async fn a_store_that_is_broken_says_nothing() {
    let expected = r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":1}"#;
    assert_eq!(without_store(false).await.response(CALL).await, expected);
}
