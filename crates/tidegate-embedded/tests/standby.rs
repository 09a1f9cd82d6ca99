//! Tests standby servers.

use tidegate_embedded::{Cluster, Shutdown, testing};

use crate::scratch::{connect, text};

#[tokio::test]
async fn a_standby_has_the_primarys_data_and_can_take_its_place() {
    let primary = Cluster::start(testing::settings()).await.unwrap();
    let standby = primary.start_standby(testing::settings()).await.unwrap();
    let writer = connect(&primary.admin_url()).await.unwrap();
    writer
        .batch_execute("CREATE TABLE kept AS SELECT 'still here' AS word")
        .await
        .unwrap();
    let reader = connect(&standby.admin_url()).await.unwrap();
    assert_eq!(
        text(&reader, "SELECT pg_is_in_recovery()::text")
            .await
            .unwrap(),
        "true"
    );
    let replayed = "SELECT to_regclass('kept')::text";
    while text(&reader, replayed).await.is_err() {
        tokio::task::yield_now().await;
    }

    primary.halt(Shutdown::Kill).await.unwrap();
    standby.promote().await.unwrap();
    reader
        .batch_execute("UPDATE kept SET word = 'changed'")
        .await
        .unwrap();
    assert_eq!(
        text(&reader, "SELECT word FROM kept").await.unwrap(),
        "changed"
    );
    let again = standby.promote().await.unwrap_err();
    assert!(again.to_string().contains("pg_ctl"), "{again}");
}
