//! Tests of the control schema with PostgreSQL, and of the behaviour that every store must have.

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod issuers;
#[cfg(test)]
mod many_members;
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
