//! Administration with a real PostgreSQL, mostly by an administrator without superuser.

mod adoption;
mod doctor;
mod drops;
mod drops_while_active;
mod fixture;
mod grants;
mod groups;
mod handover;
mod logins;
mod tenants;
mod users_role;
