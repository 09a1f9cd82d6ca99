//! Limits on the size of a response.

/// Limits on the response to a request. Rows are never left out silently: if `default_rows` or
/// `most_rows` cuts a list, the path of the list is in
/// [`PlanOutcome::truncated`](crate::PlanOutcome::truncated).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of rows of a list if the request has no `limit`.
    pub default_rows: u64,
    /// The largest number of rows of a list, even if the request has a larger `limit`.
    pub most_rows: u64,
    /// The largest size in bytes. It applies to the text of the rows, and to the whole response.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            default_rows: 1_000,
            most_rows: 10_000,
            bytes: 256 << 20,
        }
    }
}
