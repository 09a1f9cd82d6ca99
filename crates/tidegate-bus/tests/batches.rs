//! How a stream of changes is cut into messages.

use bytes::Bytes;
use tidegate_bus::batch::Batcher;
use tidegate_bus::combiner::Combiner;
use tidegate_bus::message::BusMessage;
use tidegate_bus::place::Place;
use tidegate_changelog::{Lineage, LogIdentity, LogMessage, LogPosition};

use crate::schedules::{begin, commit, insert, relation};

const LIMIT: usize = 1 << 10;

fn batcher() -> Batcher {
    let lineage = Lineage::new(LogIdentity(7));
    Batcher::new(lineage, LogPosition(100), LIMIT, LIMIT)
}

/// Adds messages and ends the batch. Returns the messages for the bus.
fn batch(batcher: &mut Batcher, messages: impl IntoIterator<Item = LogMessage>) -> Vec<BusMessage> {
    let mut out = Vec::new();
    for message in messages {
        batcher.push(message, &mut out).unwrap();
    }
    batcher.finish(&mut out);
    out
}

/// A transaction that commits at a position, and the position that PostgreSQL then reports.
fn transaction(position: u64) -> Vec<LogMessage> {
    let items = [
        begin(position),
        relation(1),
        insert(1, 0, false),
        commit(position + 5),
    ];
    let mut messages: Vec<_> = items.map(LogMessage::Change).into();
    messages.push(LogMessage::Reached(LogPosition(position + 8)));
    messages
}

fn at(position: u64) -> Place {
    Place::at(LogPosition(position))
}

#[test]
fn transactions_of_a_batch_share_a_message_and_positions_need_none() {
    let mut batcher = batcher();
    let both = [transaction(200), transaction(300)].concat();
    let out = batch(&mut batcher, both);
    assert_eq!(out.len(), 1);
    assert_eq!((out[0].from, out[0].to), (at(100), at(305)));
    assert_eq!(out[0].items.len(), 8);
    assert_eq!(batcher.place(), at(308));
    let idle = batch(&mut batcher, [LogMessage::Reached(LogPosition(400))]);
    assert_eq!(idle, []);
    let progress = batcher.progress();
    assert_eq!((progress.from, progress.to), (at(305), at(400)));
}

#[test]
fn an_open_transaction_waits_for_its_commit() {
    let mut batcher = batcher();
    let mut first = transaction(200);
    let rest = first.split_off(3);
    assert_eq!(batch(&mut batcher, first), []);
    assert_eq!(batcher.progress().to, at(100));
    let out = batch(&mut batcher, rest);
    assert_eq!(out.len(), 1);
    assert_eq!((out[0].from, out[0].to), (at(100), at(205)));
}

#[test]
fn progress_does_not_pass_items_that_were_not_sent() {
    let mut batcher = batcher();
    for message in transaction(200) {
        batcher.push(message, &mut Vec::new()).unwrap();
    }
    assert_eq!(batcher.progress().to, at(100));
}

/// The messages of a reader for transactions that commit at these positions, one by one. PostgreSQL
/// describes the table in the first one only.
fn messages(positions: &[u64]) -> Vec<BusMessage> {
    let mut batcher = batcher();
    let mut sent = Vec::new();
    for position in positions {
        let mut items = transaction(*position);
        if !sent.is_empty() {
            items.retain(|item| !matches!(item, LogMessage::Change(item) if *item == relation(1)));
        }
        sent.extend(batch(&mut batcher, items));
    }
    sent
}

#[test]
fn combined_messages_have_all_items_and_describe_a_table_once() {
    let mut combiner = Combiner::new(LIMIT);
    let sent = messages(&[200, 300, 400]);
    for message in &sent {
        assert_eq!(combiner.push(message), None);
    }
    let message = combiner.take().unwrap();
    assert!(combiner.is_empty());
    assert_eq!((message.from, message.to), (at(100), at(405)));
    let items: Vec<_> = sent.iter().flat_map(|one| one.items.clone()).collect();
    assert_eq!(message.items, items);
    // The items of the first transaction have the description.
    assert_eq!(sent[1].relations, [relation(1)]);
    assert_eq!(message.relations, Vec::<Bytes>::new());
    // Without the first transaction, the message has it once.
    for message in &sent[1..] {
        assert_eq!(combiner.push(message), None);
    }
    assert_eq!(combiner.take().unwrap().relations, [relation(1)]);
}

#[test]
fn messages_are_not_combined_above_the_limit_or_over_a_gap() {
    let sent = messages(&[200, 300, 400]);
    let size = |message: &BusMessage| message.items.iter().map(Bytes::len).sum::<usize>();
    let mut combiner = Combiner::new(size(&sent[0]) + 1);
    assert_eq!(combiner.push(&sent[0]), None);
    assert_eq!(combiner.push(&sent[1]).as_ref(), Some(&sent[0]));
    let mut combiner = Combiner::new(LIMIT);
    assert_eq!(combiner.push(&sent[0]), None);
    assert_eq!(combiner.push(&sent[2]).as_ref(), Some(&sent[0]));
    assert_eq!(combiner.take().as_ref(), Some(&sent[2]));
}

#[test]
fn messages_without_changes_are_not_combined() {
    let mut combiner = Combiner::new(LIMIT);
    assert_eq!(combiner.push(&batcher().progress()), None);
    assert!(combiner.is_empty());
}
