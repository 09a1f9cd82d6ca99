//! Random schedules: several readers of one log that overlap and break, and a network and a store
//! that lose, repeat and reorder messages. A follower hands out every change once and in order,
//! whatever happens.

use std::collections::VecDeque;

use bytes::Bytes;
use proptest::prelude::*;
use tidegate_bus::batch::Batcher;
use tidegate_bus::chain::Offered;
use tidegate_bus::follower::{Follower, Source};
use tidegate_bus::message::BusMessage;
use tidegate_bus::place::{MessageKind, Place};
use tidegate_changelog::{Lineage, LogIdentity, LogMessage, LogPosition};

const IDENTITY: LogIdentity = LogIdentity(7);
/// Longer items are not sent.
const LONGEST: usize = 60;

/// A transaction: the position of its commit, its end, and the tables that it changes.
#[derive(Clone, Debug)]
struct Transaction {
    commit: u64,
    end: u64,
    changes: Vec<(u32, bool)>,
}

pub(crate) fn begin(commit: u64) -> Bytes {
    let mut bytes = vec![b'B'];
    bytes.extend(commit.to_be_bytes());
    bytes.into()
}

pub(crate) fn commit(end: u64) -> Bytes {
    let mut bytes = vec![b'C', 0];
    bytes.extend(0_u64.to_be_bytes());
    bytes.extend(end.to_be_bytes());
    bytes.into()
}

pub(crate) fn insert(table: u32, number: usize, is_long: bool) -> Bytes {
    let mut bytes = vec![b'I'];
    bytes.extend(table.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    bytes.resize(if is_long { LONGEST + 1 } else { 20 }, 0);
    bytes.into()
}

pub(crate) fn relation(table: u32) -> Bytes {
    let mut bytes = vec![b'R'];
    bytes.extend(table.to_be_bytes());
    bytes.into()
}

/// The items of a transaction, as every reader gets them.
fn items(transaction: &Transaction) -> Vec<Bytes> {
    let mut items = vec![begin(transaction.commit)];
    for (number, (table, is_long)) in transaction.changes.iter().enumerate() {
        items.push(insert(*table, number, *is_long));
    }
    items.push(commit(transaction.end));
    items
}

/// What PostgreSQL sends to a stream that starts at a position: each table is described before its
/// first change.
fn stream(log: &[Transaction], start: LogPosition) -> Vec<LogMessage> {
    let mut described = Vec::new();
    let mut sent = Vec::new();
    for transaction in log.iter().filter(|one| one.commit >= start.0) {
        for item in items(transaction) {
            if let Ok(MessageKind::Change(tables)) = MessageKind::of(&item) {
                for table in tables {
                    if !described.contains(&table) {
                        described.push(table);
                        sent.push(LogMessage::Change(relation(table)));
                    }
                }
            }
            sent.push(LogMessage::Change(item));
        }
        sent.push(LogMessage::Reached(LogPosition(transaction.end + 1)));
    }
    sent
}

fn log() -> impl Strategy<Value = Vec<Transaction>> {
    let change = (1..4_u32, prop::bool::weighted(0.03));
    let transaction = (0..5_u64, prop::collection::vec(change, 0..12));
    prop::collection::vec(transaction, 1..14).prop_map(|all| {
        let mut position = 100;
        let place = |(gap, changes): (u64, Vec<(u32, bool)>)| {
            let commit = position + gap;
            position = commit + 10;
            Transaction {
                commit,
                end: commit + 5,
                changes,
            }
        };
        all.into_iter().map(place).collect()
    })
}

/// The choices of a schedule.
#[derive(Clone, Debug)]
struct Schedule {
    readers: Vec<Reader>,
    /// Which reader sends the next message. Readers overlap if one takes over from another that was
    /// only frozen, or that NATS has cut off.
    turns: Vec<usize>,
    /// For each message, whether the network delivers, loses, repeats or delays it.
    network: Vec<Transport>,
    /// For each message whether JetStream keeps it.
    kept: Vec<bool>,
    /// The transaction before which the follower starts.
    start: usize,
    /// At which messages the node reads the log itself.
    leaves: Vec<bool>,
}

#[derive(Clone, Debug)]
struct Reader {
    /// The transaction before which it starts.
    start: usize,
    /// Its size of messages.
    size: usize,
    /// How often it ends a batch.
    batch: usize,
    /// The percentage of its messages after which it breaks. The last reader does not break.
    share: usize,
}

#[derive(Clone, Debug)]
enum Transport {
    Lost,
    Repeated,
    /// The message comes after this many others.
    Delayed(usize),
    Delivered,
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let reader = (0..14_usize, 1..200_usize, 1..30_usize, 0..=100_usize).prop_map(
        |(start, size, batch, share)| Reader {
            start,
            size,
            batch,
            share,
        },
    );
    let transport = prop_oneof![
        1 => Just(Transport::Lost),
        1 => Just(Transport::Repeated),
        1 => (1..40_usize).prop_map(Transport::Delayed),
        5 => Just(Transport::Delivered),
    ];
    let length = 1..60_usize;
    (
        prop::collection::vec(reader, 1..4),
        prop::collection::vec(0..3_usize, length.clone()),
        prop::collection::vec(transport, length.clone()),
        prop::collection::vec(prop::bool::weighted(0.7), length.clone()),
        0..14_usize,
        prop::collection::vec(prop::bool::weighted(0.05), length),
    )
        .prop_map(|(readers, turns, network, kept, start, leaves)| Schedule {
            readers,
            turns,
            network,
            kept,
            start,
            leaves,
        })
}

fn position(log: &[Transaction], index: usize) -> LogPosition {
    LogPosition(log[index.min(log.len() - 1)].commit)
}

/// A message that a reader sends.
#[derive(Clone)]
enum Sent {
    Live(BusMessage),
    /// A message to JetStream. It has the changes of several live messages, and is sent later.
    Kept(BusMessage),
}

/// The messages of a reader, and its progress at the end.
fn publish(log: &[Transaction], reader: &Reader) -> (VecDeque<Sent>, BusMessage) {
    let start = position(log, reader.start);
    let batcher = |size| Batcher::new(Lineage::new(IDENTITY), start, size, LONGEST);
    let (mut live, mut kept) = (batcher(reader.size), batcher(3 * reader.size));
    let mut sent = VecDeque::new();
    for (number, message) in stream(log, start).into_iter().enumerate() {
        let (mut now, mut later) = (Vec::new(), Vec::new());
        live.push(message.clone(), &mut now).unwrap();
        kept.push(message, &mut later).unwrap();
        if number % reader.batch == 0 {
            live.finish(&mut now);
        }
        // The reader also says at any time how far it is.
        if number % 3 == 0 {
            now.push(live.progress());
        }
        if number % (2 * reader.batch) == 0 {
            kept.flush(&mut later);
        }
        sent.extend(now.into_iter().map(Sent::Live));
        sent.extend(later.into_iter().map(Sent::Kept));
    }
    let (mut now, mut later) = (Vec::new(), Vec::new());
    live.finish(&mut now);
    kept.flush(&mut later);
    sent.extend(now.into_iter().map(Sent::Live));
    sent.extend(later.into_iter().map(Sent::Kept));
    (sent, live.progress())
}

/// The messages of all readers in the order in which they are sent, and the progress of the last
/// reader at the end.
fn publish_all(log: &[Transaction], schedule: &Schedule) -> (Vec<Sent>, BusMessage) {
    let runs = schedule.readers.iter().map(|reader| publish(log, reader));
    let (mut queues, progress): (Vec<_>, Vec<_>) = runs.unzip();
    let (_, broken) = queues.split_last_mut().unwrap();
    for (queue, reader) in broken.iter_mut().zip(&schedule.readers) {
        queue.truncate(queue.len() * reader.share / 100);
    }
    let mut sent = Vec::new();
    for turn in schedule.turns.iter().cycle() {
        queues.retain(|queue| !queue.is_empty());
        if queues.is_empty() {
            break;
        }
        let turn = turn % queues.len();
        sent.extend(queues[turn].pop_front());
    }
    (sent, progress.last().unwrap().clone())
}

/// The world around a follower.
struct World<'a> {
    log: &'a [Transaction],
    kept: Vec<BusMessage>,
    /// The next message of `kept` while a gap is filled; `None` before the first.
    next: Option<usize>,
    /// Live messages that wait until a gap is filled.
    queue: VecDeque<BusMessage>,
    /// The start of the last message after a gap.
    gap: Place,
    follower: Follower,
    local: Option<std::vec::IntoIter<LogMessage>>,
    out: Vec<LogMessage>,
}

impl World<'_> {
    /// One step of whatever the follower waits for. Returns whether there was any.
    fn step(&mut self) -> bool {
        match self.follower.source() {
            Source::Live => match self.queue.pop_front() {
                Some(message) => self.take(&message),
                None => return false,
            },
            Source::Store => self.read_store(),
            Source::Slot => return self.read_slot(),
        }
        true
    }

    /// Reads the store as the bus does: the first message is found by bisection, and then one comes
    /// after the other.
    fn read_store(&mut self) {
        let place = self.follower.place();
        let first = || self.kept.partition_point(|one| one.to <= place);
        let index = self.next.unwrap_or_else(first);
        let found = self.kept.get(index).filter(|one| one.from <= place);
        self.follower.fetched(found, &mut self.out).unwrap();
        let source = self.follower.source();
        assert!(source != Source::Live || self.follower.place() >= self.gap);
        let goes_on = source == Source::Store;
        self.next = goes_on.then_some(index + 1);
    }

    fn read_slot(&mut self) -> bool {
        let local = self.local.get_or_insert_with(|| {
            let start = self.follower.complete();
            self.follower.opened(start);
            stream(self.log, start).into_iter()
        });
        let Some(message) = local.next() else {
            return false;
        };
        self.follower.local(&message, &mut self.out).unwrap();
        true
    }

    fn take(&mut self, message: &BusMessage) {
        let offered = self.follower.live(message, &mut self.out).unwrap();
        if offered == Offered::Gap {
            self.gap = message.from;
            assert_ne!(self.follower.source(), Source::Live);
        }
        if self.follower.source() != Source::Slot {
            self.local = None;
        }
    }

    /// A message comes. While a gap is filled from JetStream, it waits.
    fn live(&mut self, message: &BusMessage) {
        if self.follower.source() == Source::Slot {
            self.take(message);
        } else {
            self.queue.push_back(message.clone());
        }
    }
}

fn run(log: &[Transaction], schedule: &Schedule) -> Vec<LogMessage> {
    let (sent, progress) = publish_all(log, schedule);
    let choose = |list: &[bool], index: usize| list[index % list.len()];
    let mut world = World {
        log,
        kept: Vec::new(),
        next: None,
        queue: VecDeque::new(),
        gap: Place::default(),
        follower: Follower::new(IDENTITY, position(log, schedule.start)),
        local: None,
        out: Vec::new(),
    };
    let mut delayed: Vec<(usize, &BusMessage)> = Vec::new();
    for (index, message) in sent.iter().enumerate() {
        let message = match message {
            Sent::Live(message) => message,
            Sent::Kept(message) => {
                if choose(&schedule.kept, index) {
                    world.kept.push(message.clone());
                }
                continue;
            }
        };
        match schedule.network[index % schedule.network.len()] {
            Transport::Lost => {}
            Transport::Repeated => {
                world.live(message);
                world.live(message);
            }
            Transport::Delayed(count) => delayed.push((index + count, message)),
            Transport::Delivered => world.live(message),
        }
        let due = delayed.extract_if(.., |(due, _)| *due <= index);
        due.for_each(|(_, message)| world.live(message));
        if choose(&schedule.leaves, index) {
            world.follower.read_own_stream();
            (world.local, world.next) = (None, None);
        }
        for _ in 0..index % 3 {
            world.step();
        }
    }
    for (_, message) in delayed {
        world.live(message);
    }
    // In the end the reader says how far it is until that connects.
    for _ in 0..10_000 {
        while world.step() {}
        let end = Place::at(LogPosition(log.last().unwrap().end));
        if world.follower.place() >= end {
            break;
        }
        world.live(&progress);
    }
    world.out
}

/// The changes without descriptions and positions.
fn changes(out: &[LogMessage]) -> Vec<Bytes> {
    let change = |message: &LogMessage| match message {
        LogMessage::Change(item) if item.first() != Some(&b'R') => Some(item.clone()),
        _ => None,
    };
    out.iter().filter_map(change).collect()
}

/// Each table is described before its first change, and a position is outside of transactions and
/// behind everything that has committed before it.
fn assert_readable(out: &[LogMessage], log: &[Transaction], start: LogPosition) {
    let mut described = Vec::new();
    let mut place = Place::at(start);
    for message in out {
        let item = match message {
            LogMessage::Change(item) => item,
            LogMessage::Reached(position) => {
                assert!(!place.is_open() && *position >= place.lsn, "{place:?}");
                let due = log.iter().filter(|one| one.end <= position.0).count();
                let done = log.iter().filter(|one| one.end <= place.lsn.0).count();
                assert_eq!(due, done, "{position} was reached at {place:?}");
                place = Place::at(*position);
                continue;
            }
        };
        let kind = MessageKind::of(item).unwrap();
        match &kind {
            MessageKind::Relation(table) => described.push(*table),
            MessageKind::Change(tables) => {
                assert!(tables.iter().all(|table| described.contains(table)));
            }
            _ => {}
        }
        place = place.after(&kind).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_change_comes_once_and_in_order(log in log(), schedule in schedule()) {
        let out = run(&log, &schedule);
        let start = position(&log, schedule.start);
        let expected: Vec<_> = log
            .iter()
            .filter(|one| one.commit >= start.0)
            .flat_map(items)
            .collect();
        prop_assert_eq!(changes(&out), expected);
        assert_readable(&out, &log, start);
    }
}
