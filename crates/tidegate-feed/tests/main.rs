//! The crate's tests, in one binary: on the log. `outbox.rs` has those that do not depend on the
//! source once more.

/// What feeds get their changes from.
#[cfg(test)]
const SOURCE: scene::Source = scene::Source::Log;

#[cfg(test)]
mod asked;
#[cfg(test)]
mod capture;
#[cfg(test)]
mod comparison;
#[cfg(test)]
mod definition;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod idle;
#[cfg(test)]
mod live;
#[cfg(test)]
mod locks;
#[cfg(test)]
mod log;
#[cfg(test)]
mod lost;
#[cfg(test)]
mod made_anew;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod order;
#[cfg(test)]
mod partitions;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod standby;
#[cfg(test)]
mod standing;
#[cfg(test)]
mod taken_out;
#[cfg(test)]
mod untold;
#[cfg(test)]
mod values;
#[cfg(test)]
mod visibility;
#[cfg(test)]
mod workload;
