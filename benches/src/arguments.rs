//! The command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::Result;
use crate::model::arguments::ModelArguments;

/// A subcommand. Without one, the program measures the cases.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Command {
    Model(ModelArguments),
}

/// Measures the service beside PostgreSQL's own floor, in one run on one machine.
///
/// Columns: `req/s` is the rate of the service; `floor/s` is the rate of pgbench with the case's
/// SQL; `ratio` is `req/s` divided by `floor/s`. `of one` is the rate of many users divided by that
/// of one user in the same case. `aim` is the smallest value that is good enough, of `of one` if
/// that column has a value, else of `ratio`; `<` marks a missed aim. `p50` and `p99` are the
/// latency. `server`, `pg` and `load` are the CPU time of the service, of PostgreSQL and of this
/// program for each request. `logins` is the number of sessions that PostgreSQL (14 and later)
/// started during the case. `peer/s` is the rate of the other server; `times` is `req/s` divided by
/// `peer/s`, and `floor times` is `floor/s` divided by `peer/s`. The number after `sign-ups` is how
/// many users signed up during the case.
#[derive(Parser, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Seconds of one slice; a case's variants and its floor take turns, slice by slice
    #[arg(long, default_value_t = 2)]
    pub(crate) seconds: u64,
    /// Slices of each variant and each floor
    #[arg(long, default_value_t = 3)]
    pub(crate) slices: u32,
    /// Connections of the load generator and of pgbench
    #[arg(long, default_value_t = 16)]
    pub(crate) connections: usize,
    /// Threads of the load generator; see the column `load`
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Number of sub-users that send requests at random, each with a token; each of several numbers
    /// is measured [default: 300, or 20 with --quick]
    #[arg(long, value_delimiter = ',', value_name = "N")]
    pub(crate) users: Vec<u32>,
    /// The sub-users are members, who have no role and share that of their group; not in a folder
    /// that was kept with users
    #[arg(long)]
    pub(crate) members: bool,
    /// The sub-users do not sign in: the owner gets their tokens, which last 15 minutes. No
    /// password is hashed, so 10,000 users are ready sooner
    #[arg(long)]
    pub(crate) impersonate: bool,
    /// Also measure this many tenants with three users each; making one takes about a second. These
    /// tenants may use all connections of PostgreSQL, so give this flag together with `--only
    /// tenants`
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) tenants: u32,
    /// How many of `--tenants` send requests; the others only exist, and have no users [default:
    /// all]
    #[arg(long, value_name = "N", requires = "tenants")]
    pub(crate) active: Option<u32>,
    /// `max_connections` of PostgreSQL; the service takes four fifths, and pgbench needs
    /// `--connections` of the rest
    #[arg(long, default_value_t = 140, value_name = "N")]
    pub(crate) max_connections: u32,
    /// Sign-ups a second beside the variants `with sign-ups`
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) sign_ups: u32,
    /// Only the cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// A binary of the service to measure instead of a new build
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: Option<PathBuf>,
    /// The cases: a folder with `.sql` files, and `.graphql` files beside them
    #[arg(long, value_name = "FOLDER", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/shapes"))]
    pub(crate) shapes: PathBuf,
    /// Keep the data, the users and their tokens in this folder, and use what is there
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keep: Option<PathBuf>,
    /// Another GraphQL server on the same database, to which the documents `*.SERVER.graphql` are
    /// sent, over plain HTTP. The measurement waits until it answers
    #[arg(long, value_name = "[SERVER=]URL")]
    pub(crate) peer: Option<String>,
    /// Print the table as Markdown
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Check in about a minute that every case works: one slice of 0.3 s each, few users, and only
    /// the cases of the folder, the policy by claims, the foreign token and what other options ask
    /// for. The numbers mean nothing
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also sign up N members through the pages, and check that each sees only its own rows, in
    /// queries and in live events; not with a folder that was kept
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) page_sign_ups: u32,
    /// Also create N members by REST, each with a subscription to one table, and measure what the
    /// subscriptions cost while nothing changes; not with a folder that was kept
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) subscribed_members: u32,
    /// Also measure sign-in, refresh and first request of members, before and after N other members
    /// are added to the control database; not with a folder that was kept
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) others: u32,
    /// Also export ten million rows as csv and ndjson, beside COPY
    #[arg(long)]
    pub(crate) export: bool,
}

impl Arguments {
    /// The default arguments, with PostgreSQL's default number of connections.
    pub(crate) fn with_defaults_of_postgresql(binary: Option<&Path>) -> Result<Self> {
        let mut arguments = Self::try_parse_from(["tidegate-bench"])?;
        arguments.binary = binary.map(Path::to_owned);
        arguments.max_connections = 100;
        Ok(arguments)
    }

    /// Whether a case of this name is selected.
    pub(crate) fn wants(&self, name: &str) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|text| name.contains(text.as_str()))
    }

    /// The number of tenants that send requests.
    pub(crate) fn active_tenants(&self) -> u32 {
        let active = self.active.unwrap_or(self.tenants);
        active.min(self.tenants)
    }

    /// The number of connections, which is small with `--quick`.
    pub(crate) fn connections(&self) -> usize {
        if self.quick {
            4
        } else {
            self.connections.max(1)
        }
    }

    /// The duration of one slice.
    pub(crate) fn slice(&self) -> Duration {
        if self.quick {
            Duration::from_millis(300)
        } else {
            Duration::from_secs(self.seconds.max(1))
        }
    }

    /// The number of rows whose policy PostgreSQL evaluates for each member that signed up.
    pub(crate) fn judged_rows(&self) -> u32 {
        if self.quick { 1 } else { 5 }
    }

    /// How long subscriptions are measured while nothing changes.
    pub(crate) fn idle(&self) -> Duration {
        if self.quick {
            Duration::from_millis(600)
        } else {
            Duration::from_mins(1)
        }
    }

    /// The number of slices.
    pub(crate) fn slices(&self) -> u32 {
        if self.quick { 1 } else { self.slices.max(1) }
    }

    /// The number of seconds of all slices together.
    pub(crate) fn whole_seconds(&self) -> u64 {
        self.seconds.max(1) * u64::from(self.slices())
    }

    /// The numbers of users to measure, in ascending order.
    pub(crate) fn users(&self) -> Vec<u32> {
        let mut users = self.users.clone();
        if users.is_empty() {
            users.push(if self.quick { 20 } else { 300 });
        }
        users.sort_unstable();
        users.dedup();
        users
    }
}
