//! Chooses the host of a cluster to connect to (PostgreSQL, "Specifying Multiple Hosts").

use std::future::Future;
use std::sync::atomic::Ordering;

use tokio::time::{Instant, timeout};
use tracing::info;

use crate::config::{Config, Target};
use crate::connect_error::{ConnectError, HostErrors};

impl Config {
    /// Whether a connection to `target` may still be used. Returns `false` if the primary is
    /// required and another target has since been found to be the primary. In this case the server
    /// at `target` was demoted, or failed without closing its connections.
    pub fn is_current(&self, target: &Target) -> bool {
        self.primary().is_none_or(|primary| primary == target)
    }

    /// The target that was most recently found to be the primary; `None` if the primary is not
    /// required.
    pub fn primary(&self) -> Option<&Target> {
        let preferred = self.targets.get(self.preferred.load(Ordering::Relaxed));
        preferred.filter(|_| self.requires_primary)
    }

    /// Calls `attempt` for one target after another, until an attempt succeeds, or fails for a
    /// reason that other targets share, such as a refused login. The first target is the one to
    /// which a connection was most recently opened.
    ///
    /// All attempts together may take [`Config::connect_timeout`]. Each attempt gets an equal part
    /// of the time that is left, so that a host which does not respond leaves time for the other
    /// hosts.
    ///
    /// # Errors
    ///
    /// The error that ended the search, or the error of the only target. [`ConnectError::NoHost`]
    /// if none of several targets can be used.
    pub async fn first_usable<'a, T, F>(
        &'a self,
        mut attempt: impl FnMut(&'a Target) -> F,
    ) -> Result<T, ConnectError>
    where
        F: Future<Output = Result<T, ConnectError>>,
    {
        let deadline = Instant::now() + self.connect_timeout;
        let preferred = self.preferred.load(Ordering::Relaxed);
        let mut errors = Vec::new();
        for (index, left) in order(self.targets.len(), preferred) {
            let target = &self.targets[index];
            let share = deadline.saturating_duration_since(Instant::now()) / left;
            let attempted = timeout(share, attempt(target)).await;
            match attempted.unwrap_or(Err(ConnectError::TimedOut(share))) {
                Ok(connected) => {
                    if self.preferred.swap(index, Ordering::Relaxed) != index {
                        info!(host = %target, "connected to another host of the URL");
                    }
                    return Ok(connected);
                }
                Err(error) if self.targets.len() > 1 && error.is_of_host() => {
                    errors.push((target.clone(), error));
                }
                Err(error) => return Err(error),
            }
        }
        Err(ConnectError::NoHost(HostErrors(errors)))
    }
}

/// The indexes of `count` targets, beginning with `first`. Each index comes with the number of
/// targets that are not tried yet, its own target included.
fn order(count: usize, first: usize) -> impl Iterator<Item = (usize, u32)> {
    let others = (0..count).filter(move |index| *index != first);
    let left = (1..=u32::try_from(count).unwrap_or(u32::MAX)).rev();
    std::iter::once(first).chain(others).zip(left)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_sql::DatabaseError;

    use super::*;
    use crate::connect_error::ConnectFault;

    fn config() -> Config {
        Config::from_url("postgresql://u@a,b,c/x").unwrap()
    }

    fn refused(sqlstate: &str) -> ConnectError {
        let sqlstate = sqlstate.to_owned();
        ConnectError::Refused(Box::new(DatabaseError {
            sqlstate,
            ..DatabaseError::default()
        }))
    }

    fn name(target: &Target) -> String {
        target.to_string().replace(":5432", "")
    }

    /// Tries the hosts. `response` returns the error of a host, or `None` if the host accepts the
    /// login.
    async fn run(
        config: &Config,
        response: impl Fn(&str) -> Option<ConnectError>,
    ) -> (String, Result<String, ConnectError>) {
        let mut tried = String::new();
        let outcome = config.first_usable(|target| {
            tried.push_str(&name(target));
            std::future::ready(response(&name(target)).map_or(Ok(name(target)), Err))
        });
        let outcome = outcome.await;
        (tried, outcome)
    }

    #[tokio::test]
    async fn the_host_that_worked_is_tried_first() {
        let config = config();
        let only = |wanted: &'static str| {
            move |host: &str| (host != wanted).then_some(ConnectError::InRecovery)
        };
        for (primary, tried) in [("b", "ab"), ("b", "b"), ("c", "bac"), ("a", "ca")] {
            let (order, outcome) = run(&config.clone(), only(primary)).await;
            let current = config
                .targets
                .iter()
                .filter(|target| config.is_current(target));
            assert!(current.map(name).eq([primary]));
            assert_eq!(
                (order.as_str(), outcome.unwrap().as_str()),
                (tried, primary)
            );
        }
    }

    #[tokio::test]
    async fn a_refused_login_ends_the_search() {
        let response = |host: &str| Some(refused(if host == "a" { "57P03" } else { "28P01" }));
        let (tried, outcome) = run(&config(), response).await;
        assert_eq!(tried, "ab");
        assert_eq!(outcome.unwrap_err().fault(), ConnectFault::Login);
    }

    #[tokio::test]
    async fn the_error_names_each_host_and_its_reason() {
        let response = |host: &str| {
            Some(match host {
                "a" => ConnectError::Unreachable(std::io::Error::other("connection refused")),
                "b" => refused("53300"),
                _ => ConnectError::InRecovery,
            })
        };
        let error = run(&config(), response).await.1.unwrap_err();
        assert_eq!(error.fault(), ConnectFault::Unavailable);
        let text = error.to_string();
        for part in [
            "a:5432: ",
            "(connection refused)",
            "b:5432: ",
            "53300",
            "c:5432: ",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[tokio::test]
    async fn a_cluster_is_full_if_its_primary_is() {
        let response = |host: &str| {
            Some(match host {
                "b" => refused("53300"),
                _ => ConnectError::InRecovery,
            })
        };
        let error = run(&config(), response).await.1.unwrap_err();
        assert_eq!(error.fault(), ConnectFault::Full);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_host_leaves_time_for_the_others() {
        let config = config();
        let began = Instant::now();
        let outcome = config.first_usable(|target| async move {
            if name(target) != "c" {
                std::future::pending::<()>().await;
            }
            Ok(Instant::now())
        });
        let third = config.connect_timeout / 3;
        let waited = outcome.await.unwrap() - began;
        let expected = 2 * third;
        assert!(
            waited.abs_diff(expected) < Duration::from_millis(5),
            "{waited:?}"
        );
    }
}
