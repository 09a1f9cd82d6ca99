//! Writing, which waits for the peer as long as it takes anything at all.

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::{End, Flow, GOODBYE, Session};

impl Session {
    /// Writes a message.
    pub(super) async fn send(&mut self, text: Bytes) -> Flow {
        let Ok(text) = Utf8Bytes::try_from(text) else {
            return Err(End::new(1011, "internal error"));
        };
        self.write(Message::Text(text)).await
    }

    /// Writes messages that are due together.
    pub(super) async fn send_all(&mut self, texts: Vec<Bytes>) -> Flow {
        for text in texts {
            self.feed(text).await?;
        }
        self.flush().await
    }

    /// Writes a message that others follow.
    pub(super) async fn feed(&mut self, text: Bytes) -> Flow {
        let Ok(text) = Utf8Bytes::try_from(text) else {
            return Err(End::new(1011, "internal error"));
        };
        let patience = self.app.limits().timeouts.write;
        let fed = self.socket.feed(Message::Text(text));
        taken(&timeout(patience, fed).await)
    }

    pub(super) async fn flush(&mut self) -> Flow {
        let patience = self.app.limits().timeouts.write;
        taken(&timeout(patience, self.socket.flush()).await)
    }

    pub(super) async fn write(&mut self, message: Message) -> Flow {
        let patience = self.app.limits().timeouts.write;
        taken(&timeout(patience, self.socket.send(message)).await)
    }

    /// What a peer is told at last. One that takes nothing has as long for that as it had before.
    pub(super) async fn say_goodbye(&mut self, end: End) {
        if end.code == 0 {
            return;
        }
        let last = if end.stuck { self.slow().await } else { None };
        let patience = if end.stuck {
            self.app.limits().timeouts.write
        } else {
            GOODBYE
        };
        // Statements are cancelled and subscriptions end before the goodbye.
        self.entries.clear();
        self.operations.abort_all();
        let said = async {
            if let Some(text) = last {
                self.send(text).await?;
            }
            self.close(end).await;
            Ok::<_, End>(())
        };
        let _ = timeout(patience, said).await;
    }

    async fn close(&mut self, end: End) {
        let frame = CloseFrame {
            code: end.code.into(),
            reason: Utf8Bytes::from(end.reason.into_owned()),
        };
        if self.socket.close(Some(frame)).await.is_err() {
            return;
        }
        let answered = async { while let Some(Ok(_)) = self.socket.next().await {} };
        let _ = timeout(GOODBYE, answered).await;
    }
}

/// What became of writing to the peer.
fn taken(written: &Result<Result<(), Error>, Elapsed>) -> Flow {
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(End::gone()),
        Err(_) => Err(End::stuck()),
    }
}
