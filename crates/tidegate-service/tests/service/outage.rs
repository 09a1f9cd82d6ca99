//! Requests during and after an outage of PostgreSQL.

use std::time::{Duration, Instant};

use tidegate_embedded::{Cluster, Shutdown};
use tidegate_sql::Error;

use super::{TestDatabase, soon};

#[tokio::test]
async fn requests_fail_at_once_during_an_outage_and_work_afterwards() {
    let cluster = Cluster::start(tidegate_embedded::testing::settings())
        .await
        .unwrap();
    let database = TestDatabase::on(&cluster, "postgres").await;
    database.control.ping().await.unwrap();
    cluster.halt(Shutdown::Immediate).await.unwrap();
    let start = Instant::now();
    for _ in 0..50 {
        let error = database.control("SELECT 1").await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    }
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    cluster.resume().await.unwrap();
    soon(async {
        while database.control.ping().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(database.control("SELECT 1").await.unwrap().values, [["1"]]);
    cluster.stop().await.unwrap();
}
