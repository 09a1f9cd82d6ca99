//! Writes messages. Each write must end within `timeouts.write`.

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::{CLOSE_TIMEOUT, CloseReason, Session, SessionResult};

impl Session {
    /// Writes a message and flushes it.
    pub(super) async fn send(&mut self, text: Bytes) -> SessionResult {
        let Ok(text) = Utf8Bytes::try_from(text) else {
            return Err(CloseReason::new(1011, "internal error"));
        };
        self.write(Message::Text(text)).await
    }

    /// Writes several messages and flushes them together.
    pub(super) async fn send_all(&mut self, texts: Vec<Bytes>) -> SessionResult {
        for text in texts {
            self.feed(text).await?;
        }
        self.flush().await
    }

    /// Writes a message without flushing it, because other messages follow.
    pub(super) async fn feed(&mut self, text: Bytes) -> SessionResult {
        let Ok(text) = Utf8Bytes::try_from(text) else {
            return Err(CloseReason::new(1011, "internal error"));
        };
        let limit = self.app.limits().timeouts.write;
        let fed = self.socket.feed(Message::Text(text));
        check_written(&timeout(limit, fed).await)
    }

    pub(super) async fn flush(&mut self) -> SessionResult {
        let limit = self.app.limits().timeouts.write;
        check_written(&timeout(limit, self.socket.flush()).await)
    }

    pub(super) async fn write(&mut self, message: Message) -> SessionResult {
        let limit = self.app.limits().timeouts.write;
        check_written(&timeout(limit, self.socket.send(message)).await)
    }

    /// Ends the operations and sends the Close frame, within [`CLOSE_TIMEOUT`]. If the client has
    /// not read for too long, sends the message of [`Self::slow_consumer_message`] before the Close
    /// frame. In this case the time limit is `timeouts.write`. If the client has disconnected,
    /// sends nothing.
    pub(super) async fn end(&mut self, end: CloseReason) {
        if end.code == 0 {
            return;
        }
        let last = if end.stalled {
            self.slow_consumer_message().await
        } else {
            None
        };
        let limit = if end.stalled {
            self.app.limits().timeouts.write
        } else {
            CLOSE_TIMEOUT
        };
        // Operations and subscriptions end before the socket waits for the client, so that a slow
        // client does not keep them running.
        self.operations_by_id.clear();
        self.operations.abort_all();
        let close = async {
            if let Some(text) = last {
                self.send(text).await?;
            }
            self.close(end).await;
            Ok::<_, CloseReason>(())
        };
        let _ = timeout(limit, close).await;
    }

    async fn close(&mut self, end: CloseReason) {
        let frame = CloseFrame {
            code: end.code.into(),
            reason: Utf8Bytes::from(end.reason.into_owned()),
        };
        if self.socket.close(Some(frame)).await.is_err() {
            return;
        }
        let answered = async { while let Some(Ok(_)) = self.socket.next().await {} };
        let _ = timeout(CLOSE_TIMEOUT, answered).await;
    }
}

/// Returns the reason why the socket ends, if the write failed or took too long.
fn check_written(written: &Result<Result<(), Error>, Elapsed>) -> SessionResult {
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(CloseReason::disconnected()),
        Err(_) => Err(CloseReason::stalled()),
    }
}
