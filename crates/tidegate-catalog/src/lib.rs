#![doc = include_str!("../README.md")]

mod catalogs;
mod describe;
mod document;
mod error;
pub mod load;
pub mod model;
pub mod naming;
mod privileges;

pub use catalogs::{CatalogCache, DdlCounter, DdlVisibility, Schemas, WatchOutcome};
pub use describe::{describe, describe_all};
pub use error::{Error, Result};
pub use model::{ColumnId, Relation, RelationId, RelationshipId, Schema};
pub use privileges::{
    Access, ColumnPrivilege, RoleAccess, TableName, set_table_access, table_access,
};
