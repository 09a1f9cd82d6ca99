//! How much a request may ask for.

/// Limits on what comes back. Nothing is cut in silence: a list that lost rows to one of the first
/// two is named in [`Outcome::truncated`](crate::Outcome::truncated).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rows of a list for which the request says no limit.
    pub default_rows: u64,
    /// Rows of a list, whatever the request says.
    pub most_rows: u64,
    /// Bytes of all rows together, before they are put into one another and after.
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
