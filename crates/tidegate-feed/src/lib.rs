#![doc = include_str!("../README.md")]

mod admission;
mod change;
mod cursor;
mod database;
mod error;
mod feed;
mod guard;
mod index;
pub mod pgoutput;
mod policy;
mod predicate;
mod pump;
mod question;
mod queue;
mod rights;
mod ring;
mod selection;
mod settings;
mod shape;
mod stream_state;
mod subscriber;
mod table;
mod transaction;
mod type_lookup;
mod worker;

pub use change::{Operation, Operations, Row};
pub use cursor::{Cursor, NoCursor};
pub use error::{Error, Result};
pub use feed::{DatabaseStatus, Feed, Request, Subscription};
pub use predicate::Predicate;
pub use queue::{Delivery, Ended, Inbox, Item, Outbox, QueueLimits, Resync, queue};
pub use selection::{SelectedColumn, Selection, ValueForm};
pub use settings::Settings;
pub use shape::{Shape, ShapeColumn};
