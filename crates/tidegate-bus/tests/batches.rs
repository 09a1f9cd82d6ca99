//! How a stream of changes is cut into messages.

use tidegate_bus::batch::Batcher;
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

#[test]
fn a_complete_transaction_does_not_wait_for_an_open_one() {
    let mut batcher = batcher();
    let mut second = transaction(300);
    let rest = second.split_off(3);
    let out = batch(&mut batcher, [transaction(200), second].concat());
    let inside = Place {
        lsn: LogPosition(300),
        index: 2,
    };
    assert_eq!(out.len(), 1);
    assert_eq!((out[0].from, out[0].to), (at(100), inside));
    // The position of the complete transaction is reported until then.
    let progress = batcher.progress();
    assert_eq!((progress.from, progress.to), (at(205), at(205)));
    let out = batch(&mut batcher, rest);
    assert_eq!((out[0].from, out[0].to), (inside, at(305)));
}

#[test]
fn a_position_before_an_open_transaction_leaves_no_gap() {
    let mut batcher = batcher();
    assert_eq!(batch(&mut batcher, transaction(200)).len(), 1);
    assert_eq!(
        batch(&mut batcher, [LogMessage::Reached(LogPosition(250))]),
        []
    );
    batcher
        .push(LogMessage::Change(begin(300)), &mut Vec::new())
        .unwrap();
    let progress = batcher.progress();
    assert_eq!((progress.from, progress.to), (at(205), at(250)));
}

#[test]
fn a_message_can_end_inside_a_transaction() {
    let mut batcher = batcher();
    let mut first = transaction(200);
    let rest = first.split_off(3);
    assert_eq!(batch(&mut batcher, first), []);
    let mut out = Vec::new();
    batcher.flush(&mut out);
    assert!(out[0].to.is_open());
    let rest = batch(&mut batcher, rest);
    assert_eq!((rest[0].from, rest[0].to), (out[0].to, at(205)));
}
