//! The crate's tests with the WAL as the source. `outbox.rs` repeats those that work with both
//! sources.

/// The source from which feeds read changes.
#[cfg(test)]
const SOURCE: fixture::LogSource = fixture::LogSource::Log;

#[cfg(test)]
mod capture;
#[cfg(test)]
mod capture_health;
#[cfg(test)]
mod comparison;
#[cfg(test)]
mod definition;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod idle;
#[cfg(test)]
mod judgement_writes;
#[cfg(test)]
mod live;
#[cfg(test)]
mod locks;
#[cfg(test)]
mod member_batches;
#[cfg(test)]
mod members;
#[cfg(test)]
mod order;
#[cfg(test)]
mod partitions;
#[cfg(test)]
mod pending_gaps;
#[cfg(test)]
mod pgoutput;
#[cfg(test)]
mod policy_results;
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
mod stale_captures;
#[cfg(test)]
mod standby;
#[cfg(test)]
mod values;
#[cfg(test)]
mod visibility;
#[cfg(test)]
mod warnings;
#[cfg(test)]
mod workload;
