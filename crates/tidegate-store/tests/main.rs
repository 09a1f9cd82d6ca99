//! The control schema on a real PostgreSQL, and the behaviour of every store.

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod methods;
#[cfg(test)]
mod migrations;
#[cfg(test)]
mod notifications;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod store;
#[cfg(test)]
mod tenants;
