#![doc = include_str!("../README.md")]

mod error;
mod instant;
mod issuers;
mod methods;
mod migration;
mod notification;
mod oauth;
mod query;
mod row;
mod tenant;

pub use error::{Error, Result};
pub use issuers::PgIssuerStore;
pub use methods::PgMethodStore;
pub use migration::{Migrated, migrate, newest_version};
pub use notification::Change;
pub use oauth::PgOauthStore;
pub use tenant::{Tenant, Tenants};
