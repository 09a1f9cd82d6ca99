//! Administration with a real PostgreSQL, mostly by an administrator without superuser.

mod adoption;
mod doctor;
mod doctor_control;
mod doctor_feed;
mod drops;
mod drops_while_active;
pub(crate) mod fixture;
mod grants;
mod groups;
mod handover;
mod logins;
mod tenants;
mod users_role;
