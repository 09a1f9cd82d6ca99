#![doc = include_str!("../README.md")]

mod access;
mod api;
mod capture;
mod catalog_query;
mod database;
mod decode;
mod dispatch;
mod error;
mod event;
mod metrics;
mod read;
mod settings;
mod watch;

pub use api::feed::Feed;
pub use api::status::DatabaseStatus;
pub use api::subscription::{SubscribeRequest, Subscription};
pub use decode::change::Row;
pub use decode::pgoutput;
pub use decode::schema::{RelationSchema, SchemaColumn};
pub use dispatch::predicate::Predicate;
pub use dispatch::queue::{EventReceiver, EventSender, QueueLimits, event_queue};
pub use error::{Error, Result};
pub use event::cursor::{Cursor, InvalidCursor};
pub use event::item::{Delivery, Ended, Item, Resync};
pub use event::operation::{Operation, Operations};
pub use event::selection::{
    CustomForm, CustomWriter, FieldError, PathSegment, SelectedColumn, Selection, ValueForm,
};
pub use settings::FeedSettings;
