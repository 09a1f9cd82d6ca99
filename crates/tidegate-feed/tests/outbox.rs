//! The crate's tests with an outbox as the source, on a server without logical decoding.

/// The source from which feeds read changes.
#[cfg(test)]
const SOURCE: fixture::LogSource = fixture::LogSource::Outbox;

#[cfg(test)]
mod definition;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod idle;
#[cfg(test)]
mod live;
#[cfg(test)]
mod locks;
#[cfg(test)]
mod members;
#[cfg(test)]
mod outbox_capture;
#[cfg(test)]
mod partitions;
#[cfg(test)]
mod pending_gaps;
#[cfg(test)]
mod privileges;
#[cfg(test)]
mod query_log;
#[cfg(test)]
mod recreated_types;
#[cfg(test)]
mod removed_tables;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod slow_consumers;
#[cfg(test)]
mod values;
#[cfg(test)]
mod visibility;
