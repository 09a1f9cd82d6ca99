//! Tests `tidegate feed status` and `tidegate feed drop` while a node runs.

use serde_json::json;

use crate::node::{Node, no_streams_remain, operator};
use crate::socket_client::open_at;

const IDENTITY: &str = "SELECT relreplident::text FROM pg_class WHERE relname = 'orders'";
const LEFT: &str = "SELECT ((SELECT count(*) FROM pg_replication_slots) \
                    + (SELECT count(*) FROM pg_publication))::text";

#[tokio::test(flavor = "multi_thread")]
async fn what_the_feed_keeps_is_shown_and_dropped() {
    let operator = operator().await;
    let nothing = operator.succeeds(&["feed", "status"], "");
    assert!(nothing.contains("wal_level = logical\n"), "{nothing}");
    assert!(nothing.contains("\nno slots\n"), "{nothing}");
    assert!(nothing.contains("\nshop\n  no publications\n"), "{nothing}");

    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap();
    let mut socket = open_at(&node.url, &format!("/?token={token}"), &[])
        .await
        .unwrap();
    let raw = json!({"type": "subscription", "id": "a", "schema": "public", "rel": "orders"});
    assert_eq!(socket.ask(raw).await["type"], "subscription_ack");

    let shown = operator.succeeds(&["feed", "status", "shop"], "");
    for part in [
        "max_replication_slots = ",
        " in use)\n",
        "max_slot_wal_keep_size = ",
        "\nDATABASE  SLOT",
        "reserved",
        "  publication tidegate of shop: 1 table\n    public.orders\n",
        "  publication tidegate_inserts of shop: no tables\n",
        "  replica identity of public.orders raised from DEFAULT to FULL\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let inside = operator.root("shop").await;
    let value = async |sql: &str| -> String { inside.query_one(sql, &[]).await.unwrap().get(0) };

    let asked = operator.fails(&["feed", "drop", "shop"], "");
    assert!(asked.1.contains("--yes"), "{asked:?}");
    let (code, printed) = operator.fails(&["feed", "drop", "shop", "--yes"], "");
    assert_eq!(code, 1);
    assert!(
        printed.contains("changes of shop are still read"),
        "{printed}"
    );
    assert!(printed.contains("--end-streams"), "{printed}");
    assert_eq!(value(IDENTITY).await, "f", "nothing was dropped");

    node.stop();
    no_streams_remain(&operator).await;
    let dropped = operator.succeeds(&["feed", "drop", "shop", "--yes"], "");
    for part in [
        "ALTER TABLE ONLY public.orders REPLICA IDENTITY DEFAULT;\n",
        "DROP PUBLICATION tidegate;\nDROP PUBLICATION tidegate_inserts;\n",
        "SELECT pg_drop_replication_slot('tidegate_",
    ] {
        assert!(dropped.contains(part), "{part}: {dropped}");
    }
    assert_eq!(value(IDENTITY).await, "d");
    assert_eq!(value(LEFT).await, "0");
    let again = operator.succeeds(&["feed", "drop", "shop", "--yes"], "");
    assert_eq!(again, "-- there was nothing\n");

    let (drop, status) = (
        ["feed", "drop", "nowhere", "--yes"],
        ["feed", "status", "nowhere"],
    );
    for arguments in [&drop[..], &status[..]] {
        let (code, printed) = operator.fails(arguments, "");
        assert_eq!(code, 1);
        assert!(
            printed.contains("there is no database nowhere"),
            "{printed}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_streams_were_dropped_reports_it_and_continues() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let path = format!("/?token={}", tokens["access_token"].as_str().unwrap());
    let mut socket = open_at(&node.url, &path, &[]).await.unwrap();
    let raw = json!({"type": "subscription", "id": "a", "schema": "public", "rel": "orders"});
    assert_eq!(socket.ask(raw).await["type"], "subscription_ack");
    let inside = operator.root("shop").await;
    let first = "INSERT INTO orders VALUES (7, 1)";
    inside.batch_execute(first).await.unwrap();
    assert_eq!(socket.receive().await["type"], "batch");
    // The node may have opened a new stream before the command checks. In that case the command
    // reports the stream.
    let dropped = operator.run(&["feed", "drop", "shop", "--yes", "--end-streams"], "");
    let printed = String::from_utf8([dropped.stdout, dropped.stderr].concat()).unwrap();
    let done = printed.contains("DROP PUBLICATION tidegate;\n");
    let back = printed.contains("has created again what was dropped");
    assert_eq!((done, back), (dropped.status.success(), !done), "{printed}");
    let gap = socket.receive().await;
    assert_eq!(
        (&gap["type"], &gap["id"]),
        (&json!("resync"), &json!("a")),
        "{gap}"
    );
    assert_eq!(gap["reason"], "interrupted", "{gap}");
    // The node has created the objects that it needs again, so a new subscriber misses nothing
    // after its acknowledgement. The subscriber may get a `resync`, because the node may notice the
    // end of the streams only after the command.
    let mut late = open_at(&node.url, &path, &[]).await.unwrap();
    let raw = json!({"type": "subscription", "id": "b", "schema": "public", "rel": "orders"});
    assert_eq!(late.ask(raw).await["type"], "subscription_ack");
    let second = "INSERT INTO orders VALUES (8, 1)";
    inside.batch_execute(second).await.unwrap();
    let mut batch = late.receive().await;
    while batch["type"] == "resync" {
        batch = late.receive().await;
    }
    assert_eq!(
        batch["batch"]["shop"]["public.orders"]["full_data"][0]["id"], 8,
        "{batch}"
    );
    let mut batch = socket.receive().await;
    while batch["type"] == "resync" {
        batch = socket.receive().await;
    }
    assert_eq!(
        batch["batch"]["shop"]["public.orders"]["full_data"][0]["id"], 8,
        "{batch}"
    );
    node.stop();
    no_streams_remain(&operator).await;
    // What stays of the feed when the tenant goes is named, and can still be dropped.
    let gone = operator.succeeds(&["tenant", "drop", "shop", "--yes"], "");
    assert!(
        gone.contains("`tidegate feed drop shop` drops them"),
        "{gone}"
    );
    operator.succeeds(&["feed", "drop", "shop", "--yes"], "");
    let left: String = inside.query_one(LEFT, &[]).await.unwrap().get(0);
    let identity: String = inside.query_one(IDENTITY, &[]).await.unwrap().get(0);
    assert_eq!((&*left, &*identity), ("0", "d"));
}
