//! Tests how a chain handles malformed messages and messages of another log.

use tidegate_bus::chain::{Chain, Offered};
use tidegate_bus::message::BusMessage;
use tidegate_bus::place::{Malformed, Place};
use tidegate_changelog::{LogIdentity, LogPosition};

use crate::schedules::{begin, insert, relation};

const IDENTITY: LogIdentity = LogIdentity(7);

fn at(position: u64) -> Place {
    Place::at(LogPosition(position))
}

/// A chain inside the transaction that commits at 200, before which it has handed out everything.
fn inside() -> Chain {
    let mut chain = Chain::new(IDENTITY, LogPosition(100));
    let to = Place {
        lsn: LogPosition(200),
        index: 2,
    };
    let first = BusMessage {
        identity: IDENTITY,
        from: at(100),
        to,
        relations: vec![relation(1)],
        items: vec![begin(200), insert(1, 0, false)],
        ancestors: Vec::new(),
    };
    let mut out = Vec::new();
    assert_eq!(chain.offer(&first, &mut out), Ok(Offered::Taken));
    assert_eq!(out.len(), 3);
    chain
}

fn empty(identity: LogIdentity, from: Place, to: Place) -> BusMessage {
    BusMessage {
        identity,
        from,
        to,
        relations: Vec::new(),
        items: Vec::new(),
        ancestors: Vec::new(),
    }
}

#[test]
fn progress_does_not_skip_the_rest_of_a_transaction() {
    let mut chain = inside();
    let (place, mut out) = (chain.place(), Vec::new());
    let progress = empty(IDENTITY, at(100), at(300));
    assert_eq!(chain.offer(&progress, &mut out), Ok(Offered::Gap));
    assert_eq!((chain.place(), out.len()), (place, 0));
}

#[test]
fn a_message_of_another_log_changes_nothing() {
    let mut chain = inside();
    let (place, mut out) = (chain.place(), Vec::new());
    let other = empty(LogIdentity(8), place, at(300));
    assert_eq!(chain.offer(&other, &mut out), Ok(Offered::OtherLog));
    assert_eq!((chain.place(), out.len()), (place, 0));
}

#[test]
fn items_that_do_not_lead_to_the_end_of_their_message_are_refused() {
    let mut chain = inside();
    let mut message = empty(IDENTITY, chain.place(), at(300));
    message.items = vec![insert(1, 1, false)];
    message.relations = vec![relation(1)];
    assert_eq!(chain.offer(&message, &mut Vec::new()), Err(Malformed));
}
