//! Summaries of errors for the log and the metrics.

use super::ApiError;
use crate::report::{Errors, Protocol};

impl Errors {
    /// The summary of a response that has one error.
    pub fn of_failure(protocol: Protocol, failure: &ApiError) -> Self {
        let counts = vec![(failure.code, 1)];
        Self::new(protocol, counts, failure.rejection())
    }

    /// The summary of the errors of JSON-RPC calls; `None` without errors. It has the codes of the
    /// REST endpoints, which are more precise than the numbers of JSON-RPC.
    pub fn of_rpc(failures: &[ApiError]) -> Option<Self> {
        let first = failures.first()?;
        let mut errors = Self::of_failure(Protocol::JsonRpc, first);
        for failure in &failures[1..] {
            let known = errors.counts.iter_mut();
            match known.into_iter().find(|(code, _)| *code == failure.code) {
                Some((_, count)) => *count += 1,
                None => errors.counts.push((failure.code, 1)),
            }
        }
        Some(errors)
    }
}
