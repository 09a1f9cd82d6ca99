//! The GraphQL API of a catalog schema.

mod definition;
mod kind;
mod subscription;
