#![doc = include_str!("../README.md")]

mod describe;
mod error;
mod privileges;

pub use describe::{describe, describe_all};
pub use error::{Error, Result};
pub use privileges::{
    Access, ColumnPrivilege, RoleAccess, TableName, set_table_access, table_access,
};
