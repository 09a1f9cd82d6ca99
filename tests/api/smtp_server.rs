//! A fixture: an SMTP server on this machine that keeps the text of each message.

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::service::TIMEOUT;

/// The messages that the server has received.
pub(crate) struct Emails(UnboundedReceiver<String>);

/// Starts a server; returns its URL and the messages that it gets.
pub(crate) async fn smtp_server() -> (String, Emails) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}", listener.local_addr().unwrap());
    let (sender, messages) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, sender.clone()));
        }
    });
    (url, Emails(messages))
}

/// Accepts the messages of one connection. It supports no extension of SMTP.
async fn serve(mut socket: TcpStream, messages: UnboundedSender<String>) {
    let (read, mut write) = socket.split();
    let mut lines = BufReader::new(read).lines();
    let mut data: Option<String> = None;
    let _ = write.write_all(b"220 here\r\n").await;
    while let Ok(Some(line)) = lines.next_line().await {
        let response: &[u8] = match (&mut data, line.as_str()) {
            (Some(_), ".") => {
                let _ = messages.send(data.take().unwrap());
                b"250 kept\r\n"
            }
            (Some(text), line) => {
                text.push_str(line);
                text.push('\n');
                continue;
            }
            (None, "DATA") => {
                data = Some(String::new());
                b"354 go on\r\n"
            }
            (None, _) => b"250 fine\r\n",
        };
        if write.write_all(response).await.is_err() {
            return;
        }
    }
}

impl Emails {
    /// Waits for the next message; returns the path of the link in it, which leads to `url`.
    pub(crate) async fn link(&mut self, url: &str) -> String {
        let text = tokio::time::timeout(TIMEOUT, self.0.recv()).await;
        // The body may be quoted-printable (RFC 2045, section 6.7).
        let text = text.unwrap().unwrap();
        let text = text.replace("=\n", "").replace("=3D", "=");
        let (_, path) = text.split_once(url).unwrap_or_else(|| panic!("{text}"));
        path.split_whitespace().next().unwrap().to_owned()
    }
}
