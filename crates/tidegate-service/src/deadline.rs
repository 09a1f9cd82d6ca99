//! The time limits of statements.

use std::future::Future;
use std::time::Duration;

use tidegate_sql::{Error, QueryOptions, Result};
use tidegate_wire::ConnectError;
use tokio::time::{Instant, timeout, timeout_at};

use crate::service_pool::RETRY_AFTER;

/// The time limit of a statement without a deadline. PostgreSQL ends a statement of the service
/// after a minute (`statement_timeout`), so only an unreachable server takes longer.
const STATEMENT: Duration = Duration::from_secs(65);

/// Runs a future. Fails with [`Error::Deadline`] if the deadline passes first, and with
/// [`Error::Unavailable`] if there is no deadline and PostgreSQL does not respond for
/// [`STATEMENT`].
pub(crate) async fn within<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work)
            .await
            .unwrap_or(Err(Error::Deadline)),
        None => timeout(STATEMENT, work)
            .await
            .unwrap_or_else(|_| Err(ConnectError::TimedOut(STATEMENT).into_sql(RETRY_AFTER))),
    }
}

/// The deadline of a request, as an instant of tokio.
pub(crate) fn deadline(options: &QueryOptions) -> Option<Instant> {
    options.deadline.map(Instant::from_std)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::{Error, STATEMENT, within};

    #[tokio::test(start_paused = true)]
    async fn a_statement_without_a_deadline_ends_too() {
        let began = tokio::time::Instant::now();
        let outcome = within::<()>(None, pending()).await;
        assert!(matches!(outcome, Err(Error::Unavailable { .. })));
        assert_eq!(began.elapsed(), STATEMENT);
    }
}
