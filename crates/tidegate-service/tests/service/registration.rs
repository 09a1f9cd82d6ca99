//! Nodes that share the connections of a server.

use std::sync::Arc;

use tidegate_service::cluster_status::{nodes, readers};
use tidegate_service::{KeptConnection, NodeDemand, NodeIdentity, NodeRegistration, NodeShare};
use tidegate_testkit::connect;
use tidegate_wire::Config;

use super::soon;

const DEMAND: NodeDemand = NodeDemand {
    total: 30,
    expected: 1,
    most: 30,
    claimed: 5,
    open: 3,
};

/// The configuration of nodes with a control database of their own.
async fn config(database: &str) -> Arc<Config> {
    let cluster = tidegate_embedded::testing::cluster();
    let root = connect(&cluster.url("postgres")).await;
    let create = format!("CREATE DATABASE {database} TEMPLATE template0");
    root.batch_execute(&create).await.unwrap();
    Arc::new(tidegate_testkit::config(&cluster.admin_url(), database))
}

fn node(config: &Arc<Config>, id: u32) -> NodeRegistration {
    let identity = NodeIdentity {
        id,
        version: "0.1.0-test",
        since: 1_764_000_000 + u64::from(id),
    };
    NodeRegistration::new(config.clone(), identity)
}

async fn share(node: &mut NodeRegistration, demand: NodeDemand) -> (usize, usize) {
    let NodeShare { nodes, connections } = node.exchange(&demand).await.unwrap();
    (nodes, connections)
}

#[tokio::test]
async fn nodes_claim_together_no_more_than_there_is() {
    let config = config("shared_by_nodes").await;
    let (mut first, mut second) = (node(&config, 1), node(&config, 2));
    assert_eq!(share(&mut first, DEMAND).await, (1, 30));
    // The first node has claimed all connections.
    assert_eq!(share(&mut second, DEMAND).await, (2, 0));
    // The first node may have fewer connections now, but holds as many as before until it has
    // closed some.
    let holding = NodeDemand {
        claimed: 30,
        ..DEMAND
    };
    assert_eq!(share(&mut first, holding).await, (2, 15));
    assert_eq!(share(&mut second, DEMAND).await, (2, 0));
    let closed = NodeDemand {
        claimed: 15,
        ..DEMAND
    };
    assert_eq!(share(&mut first, closed).await, (2, 15));
    assert_eq!(share(&mut second, DEMAND).await, (2, 15));
    // A node can take less than its share, and less than its part of the nodes that are expected.
    let modest = NodeDemand { most: 7, ..DEMAND };
    assert_eq!(share(&mut second, modest).await, (2, 7));
    let expecting = NodeDemand {
        expected: 3,
        ..DEMAND
    };
    assert_eq!(share(&mut second, expecting).await, (2, 10));
    drop(first);
    soon(async { while share(&mut second, DEMAND).await != (1, 30) {} }).await;
}

#[tokio::test]
async fn the_status_shows_the_registered_nodes() {
    let config = config("status_of_nodes").await;
    let control = KeptConnection::new(&config, &config.control_database);
    assert!(nodes(&control).await.unwrap().is_empty());
    let (mut first, mut second) = (node(&config, 0xab), node(&config, 0xac));
    share(&mut first, DEMAND).await;
    share(&mut second, DEMAND).await;
    let found = nodes(&control).await.unwrap();
    let described: Vec<_> = found
        .iter()
        .map(|node| (&*node.id, &*node.version, node.claimed, node.connections))
        .collect();
    assert_eq!(
        described,
        [
            ("000000ab", "0.1.0-test", 30, 3),
            ("000000ac", "0.1.0-test", 5, 3)
        ]
    );
    assert_eq!(found[0].since, 1_764_000_000 + 0xab);
    assert!((0.0..60.0).contains(&found[0].seen), "{found:?}");
    assert!(readers(&control).await.unwrap().is_empty());
}
