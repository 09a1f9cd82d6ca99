//! Administration against a real PostgreSQL, mostly as an administrator that is no superuser.

mod adoption;
mod bench;
mod doctor;
mod tenants;
