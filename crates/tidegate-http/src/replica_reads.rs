//! Chooses replicas for reads. A replica must have replayed all changes that the client knows: the
//! client's own writes, and the changes of events that it has received.

use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_feed::Cursor;
use tidegate_sql::{Login, ReadFrom, WalPosition};

use crate::app::{App, ReplicaReads};
use crate::error::ApiError;

/// The request header with positions. The response must show all changes up to these positions.
pub const AFTER: HeaderName = HeaderName::from_static("tidegate-after");
/// The response header with the position that follows the session's most recent write.
pub const POSITION: HeaderName = HeaderName::from_static("tidegate-position");

/// The servers from which the statements of a request may read.
///
/// # Errors
///
/// 400 if `Tidegate-After` is neither a position nor a cursor.
pub fn read_from(app: &App, headers: &HeaderMap) -> Result<ReadFrom, ApiError> {
    let Some(reads) = app.replica_reads() else {
        return Ok(ReadFrom::Primary);
    };
    let mut after = WalPosition(0);
    for value in headers.get_all(AFTER) {
        match parse(value, reads) {
            Some(ReadFrom::Replica { after: next }) => after = after.max(next),
            Some(ReadFrom::Primary) => return Ok(ReadFrom::Primary),
            None => {
                return Err(ApiError::input(
                    "`Tidegate-After` must be a `Tidegate-Position` of an earlier response, such \
                     as 16/B374D848, or the cursor of an event",
                ));
            }
        }
    }
    Ok(ReadFrom::Replica { after })
}

fn parse(value: &HeaderValue, reads: ReplicaReads) -> Option<ReadFrom> {
    let text = value.to_str().ok()?.trim();
    match text.parse() {
        Ok(after) => Some(ReadFrom::Replica { after }),
        Err(_) => Some(servers_for(text.parse().ok()?, reads)),
    }
}

/// The servers from which an operation on a socket may read. `sent` is the cursor of the event that
/// was sent most recently.
pub fn read_after(app: &App, sent: Option<Cursor>) -> ReadFrom {
    match (app.replica_reads(), sent) {
        (None, _) => ReadFrom::Primary,
        (Some(_), None) => ReadFrom::Replica {
            after: WalPosition(0),
        },
        (Some(reads), Some(sent)) => servers_for(sent, reads),
    }
}

fn servers_for(cursor: Cursor, reads: ReplicaReads) -> ReadFrom {
    if reads.cursors_in_wal {
        let after = WalPosition(cursor.end().0);
        ReadFrom::Replica { after }
    } else {
        ReadFrom::Primary
    }
}

/// Sets the header `Tidegate-Position` of a response to the position of the last write with this
/// login. All requests of one OAuth session have the same login, and all anonymous callers of a
/// tenant have the same login. Does nothing if no replicas are used, if nothing was written with
/// the login within the last minute, or if the position is not known.
pub fn set_position(app: &App, session: Option<&Login>, headers: &mut HeaderMap) {
    if app.replica_reads().is_none() {
        return;
    }
    let position = session.and_then(|session| app.executor().last_write(session));
    let position = position.and_then(|position| HeaderValue::try_from(position.to_string()).ok());
    if let Some(position) = position {
        headers.insert(POSITION, position);
    }
}
