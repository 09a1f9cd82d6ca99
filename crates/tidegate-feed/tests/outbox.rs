//! The crate's tests on the outbox, on a server whose log tells nothing of rows.

/// What feeds get their changes from.
#[cfg(test)]
const SOURCE: scene::Source = scene::Source::Outbox;

#[cfg(test)]
mod asked;
#[cfg(test)]
mod definition;
#[cfg(test)]
mod idle;
#[cfg(test)]
mod live;
#[cfg(test)]
mod locks;
#[cfg(test)]
mod made_anew;
#[cfg(test)]
mod outbox_capture;
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
mod taken_out;
#[cfg(test)]
mod untold;
#[cfg(test)]
mod values;
#[cfg(test)]
mod visibility;
