//! Black-box tests: the built binary over real sockets, in front of a real PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![expect(clippy::too_many_lines, reason = "a table of cases is read as a table")]

mod node;
mod operator;
mod pages;
mod service;

mod audit;
mod catalog;
mod cli;
mod clients;
mod demo;
mod examples;
mod faults;
mod flows;
mod graphiql;
mod graphql;
mod graphql_reading;
mod graphql_writing;
mod identity;
mod interfaces;
mod keys;
mod letters;
mod methods;
mod oauth;
mod oauth2_client;
mod operations;
mod privileges;
mod rpc;
mod rpc_batches;
mod rpc_changes;
mod rpc_errors;
mod serve;
mod socket;
mod socket_ends;
mod socket_events;
mod sockets;
mod sql;
mod sql_outputs;
mod sql_schema;
mod sql_values;
mod user_roles;
mod users;
