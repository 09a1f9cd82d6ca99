//! Administration against a real PostgreSQL, mostly as an administrator that is no superuser.

mod adoption;
mod doctor;
mod drops;
mod fixture;
mod grants;
mod groups;
mod handover;
mod logins;
mod tenants;
mod users_role;
