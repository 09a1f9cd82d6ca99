//! Black-box tests: the built binary over real sockets, in front of a real PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![expect(clippy::too_many_lines, reason = "a table of cases is read as a table")]

mod node;
mod operator;
mod pages;
mod service;
mod tokens;

mod attacks;
mod audit;
mod catalog;
mod cli;
mod clients;
mod demo;
mod enumeration;
mod examples;
mod faults;
mod feed_command;
mod feed_outbox;
#[path = "../../crates/tidegate-feed/tests/workload.rs"]
mod feed_workload;
mod flows;
mod github;
mod graphiql;
mod graphql;
mod graphql_reading;
mod graphql_writing;
mod identity;
mod interfaces;
mod isolation;
mod keys;
mod letters;
mod limits;
mod methods;
mod oauth;
mod oauth2_client;
mod oauth_input;
mod operations;
mod privileges;
mod rpc;
mod rpc_batches;
mod rpc_changes;
mod rpc_errors;
mod rpc_limits;
mod rules;
mod serve;
mod socket;
mod socket_ends;
mod socket_events;
mod socket_faults;
mod socket_slow;
mod socket_time;
mod sockets;
mod sql;
mod sql_errors;
mod sql_outputs;
mod sql_schema;
mod sql_spatial;
mod sql_statements;
mod sql_transactions;
mod sql_values;
mod tls;
mod user_roles;
mod users;
mod watching;
