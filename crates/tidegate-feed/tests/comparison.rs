//! Tests that the two sources, change log and outbox, give the same events for the same work.

use tidegate_feed::{Item, Operation};

use crate::fixture::{Fixture, Listener, LogSource, Setup, listen, node};
use crate::workload::{COLUMNS, Dice, TABLES, WRITERS, WorkloadWriter, definition};

/// The events of a listener, grouped by writer. The events of different writers may come in any
/// order, but those of one writer may not.
async fn received(listener: &mut Listener) -> Vec<Vec<String>> {
    let mut received = vec![Vec::new(); WRITERS];
    loop {
        match listener.next().await {
            Item::Event { operation, row, .. } => {
                let row = String::from_utf8(row.to_vec()).unwrap();
                let id: i64 = row["{\"id\":".len()..row.find(',').unwrap()]
                    .parse()
                    .unwrap();
                let Ok(id) = usize::try_from(id) else {
                    return received;
                };
                let sign = match operation {
                    Operation::Insert => '+',
                    Operation::Update => '~',
                    Operation::Delete => '-',
                };
                received[id % WRITERS].push(format!("{sign}{row}"));
            }
            Item::Resync { reason, .. } => {
                for received in &mut received {
                    received.push(format!("{reason:?}"));
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn both_sources_deliver_the_same_events() {
    let fixture = Fixture::new("feed_compare").await;
    fixture.run(&definition()).await;
    let setup = |source| Setup {
        source,
        ..Setup::default()
    };
    let feeds = [LogSource::Log, LogSource::Outbox].map(|source| node(&setup(source)));
    let mut columns = vec!["id"];
    let names: Vec<_> = COLUMNS
        .iter()
        .map(|(name, ..)| name.replace("\"\"", "\""))
        .collect();
    columns.extend(names.iter().map(String::as_str));
    let mut listeners = Vec::new();
    for table in TABLES {
        for feed in &feeds {
            let request = fixture.request(table, &columns).await;
            listeners.push(listen(feed, request).await.unwrap());
        }
    }
    write_workload(&fixture).await;
    for (pair, table) in listeners.chunks_mut(2).zip(TABLES) {
        let [log, outbox] = pair else { unreachable!() };
        let (log, outbox) = (received(log).await, received(outbox).await);
        for (log, outbox) in log.iter().zip(&outbox) {
            for (log, outbox) in log.iter().zip(outbox) {
                assert_eq!(log, outbox, "{table}");
            }
            assert_eq!(log.len(), outbox.len(), "{table}");
            assert!(log.len() > 100, "{table} has only {} events", log.len());
        }
    }
}

async fn write_workload(fixture: &Fixture) {
    let mut dice = Dice(7);
    let mut writers = Vec::new();
    for number in 0..WRITERS {
        writers.push(WorkloadWriter::new(fixture.session().await, number).await);
    }
    for round in 0..4 {
        for _ in 0..600 {
            let writer = dice.roll(WRITERS);
            writers[writer].step(&mut dice).await;
        }
        for writer in &mut writers {
            let end = if round == 1 { "ROLLBACK" } else { "COMMIT" };
            if writer.is_open {
                let end = writer.end(end);
                writer.session.batch_execute(&end).await.unwrap();
            }
        }
        if round == 2 {
            fixture
                .run("TRUNCATE parted; BEGIN; TRUNCATE keyless; ROLLBACK; TRUNCATE keyless")
                .await;
        }
    }
    for table in TABLES {
        fixture
            .run(&format!("INSERT INTO {table} (id) VALUES (-1)"))
            .await;
    }
}
