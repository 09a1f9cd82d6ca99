#![doc = include_str!("../README.md")]

mod append;
mod binary_reader;
pub mod codec;
mod column;
pub mod datetime;
mod error;
pub mod json;
pub mod output;
pub mod parameter;
mod type_property;

pub use column::{Column, RawRow, Values, WireFormat};
pub use error::{MalformedValue, Result, ValueError};
pub use output::{OutputFormat, OutputOptions, RowWriter};
pub use parameter::{InputFormat, Parameter};
pub use postgres_types::{Field as TypeField, Kind as TypeKind, Type};
pub use type_property::{
    array_delimiter, base_type, has_attributes, is_hstore, is_spatial, operator_schema,
};
