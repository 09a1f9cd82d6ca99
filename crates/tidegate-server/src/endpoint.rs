//! The endpoints. Each handler decodes a request, calls a library, and encodes the result or the
//! error.

pub(crate) mod activity;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod clients;
pub(crate) mod console;
pub(crate) mod docs;
pub(crate) mod documents;
pub(crate) mod graphql;
pub(crate) mod impersonation;
pub(crate) mod issuers;
pub(crate) mod methods;
pub(crate) mod oauth;
pub(crate) mod openapi;
pub(crate) mod operations;
mod password;
pub(crate) mod privileges;
mod rest;
pub(crate) mod sessions;
pub(crate) mod sql;
pub(crate) mod tenant;
pub(crate) mod tokens;
pub(crate) mod user_info;
pub(crate) mod users;

pub use openapi::openapi;
pub(crate) use operations::OperatorListener;
