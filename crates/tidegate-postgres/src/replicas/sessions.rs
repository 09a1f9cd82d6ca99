//! The position of each session's most recent write.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::{Login, WalPosition};
use tokio::time::Instant;

/// How long the position of a write is stored. It is not needed for longer, because a replica that
/// is used lags by much less.
const KEPT: Duration = Duration::from_mins(1);

/// The position after the most recent write of each session, stored for a minute.
#[derive(Default)]
pub(super) struct Sessions(Mutex<Writes>);

#[derive(Default)]
struct Writes {
    last: HashMap<Login, (WalPosition, Instant)>,
    /// The number of entries at which old entries are removed.
    limit: usize,
}

impl Sessions {
    pub(super) fn last_write(&self, login: &Login) -> Option<WalPosition> {
        let writes = self.0.lock();
        let (position, at) = writes.last.get(login)?;
        (at.elapsed() < KEPT).then_some(*position)
    }

    pub(super) fn wrote(&self, login: &Login, position: WalPosition) {
        let now = Instant::now();
        let mut writes = self.0.lock();
        if writes.last.len() >= writes.limit {
            writes.last.retain(|_, (_, at)| at.elapsed() < KEPT);
            writes.limit = (writes.last.len() * 2).max(1024);
        }
        let entry = writes.last.entry(login.clone());
        let (last, at) = entry.or_insert((position, now));
        // Positions may arrive out of order, so the largest is stored. `u64::MAX` means that the
        // position of a write is unknown. It is replaced by the next position, which was read after
        // that write.
        *last = if last.0 == u64::MAX {
            position
        } else {
            position.max(*last)
        };
        *at = now;
    }
}

#[cfg(test)]
mod tests {
    use tidegate_sql::{DatabaseName, RoleName, RoleUse};

    use super::*;

    fn session(number: u128) -> Login {
        Login {
            database: DatabaseName::new("shop"),
            role: RoleName::new("shop/ann"),
            role_use: RoleUse::User(number),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_write_of_a_session_is_known_for_a_minute() {
        let sessions = Sessions::default();
        sessions.wrote(&session(1), WalPosition(7));
        sessions.wrote(&session(1), WalPosition(5));
        assert_eq!(sessions.last_write(&session(1)), Some(WalPosition(7)));
        assert_eq!(sessions.last_write(&session(2)), None);
        tokio::time::advance(KEPT).await;
        assert_eq!(sessions.last_write(&session(1)), None);
        for number in 2..3000 {
            sessions.wrote(&session(number), WalPosition(9));
        }
        assert_eq!(
            sessions.0.lock().last.len(),
            2998,
            "old entries are removed"
        );
    }

    #[test]
    fn an_unknown_position_holds_until_the_next_write() {
        let sessions = Sessions::default();
        for (position, last) in [(7, 7), (u64::MAX, u64::MAX), (9, 9)] {
            sessions.wrote(&session(1), WalPosition(position));
            assert_eq!(sessions.last_write(&session(1)), Some(WalPosition(last)));
        }
    }
}
