//! Tests of sending email over a real socket, to a server that records the session.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use tidegate_identity::{Email, Mailer as _};
use tidegate_mail::{Error, SmtpMailer};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

#[test]
fn unencrypted_connections_over_a_network_are_rejected() {
    for good in [
        "smtps://user:secret@smtp.example.com",
        "smtp://user:secret@smtp.example.com:587?tls=required",
        "smtp://127.0.0.1:2525",
        "smtp://[::1]:2525",
        "smtp://localhost",
    ] {
        assert!(SmtpMailer::new(good, "a@example.com").is_ok(), "{good}");
    }
    for bad in [
        "smtp://smtp.example.com",
        "smtp://127.0.0.1@smtp.example.com:25",
        "smtp://smtp.example.com:587?tls=opportunistic",
        "smtp://127.0.0.1.example.com",
        "smtp://user:tls=required@smtp.example.com",
    ] {
        let refused = SmtpMailer::new(bad, "a@example.com");
        assert!(matches!(refused, Err(Error::Unencrypted(_))), "{bad}");
    }
    for bad in ["", "smtp.example.com", "https://smtp.example.com"] {
        let refused = SmtpMailer::new(bad, "a@example.com");
        assert!(matches!(refused, Err(Error::SmtpUrl(_))), "{bad}");
    }
    let refused = SmtpMailer::new("smtps://smtp.example.com", "not a mailbox");
    assert!(matches!(refused, Err(Error::Sender(_))));
    let shown = format!("{:?}", SmtpMailer::new("smtps://u:hunter2@h", "a@b.c"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

/// Accepts one message; returns everything that the client sent.
async fn serve_one_message(listener: TcpListener) -> String {
    let (mut socket, _) = listener.accept().await.unwrap();
    let (read, mut write) = socket.split();
    let mut lines = BufReader::new(read).lines();
    let (mut received, mut in_data) = (String::new(), false);
    write.write_all(b"220 here\r\n").await.unwrap();
    while let Ok(Some(line)) = lines.next_line().await {
        received.push_str(&line);
        received.push('\n');
        let response: &[u8] = match (in_data, line.as_str()) {
            (true, ".") => {
                in_data = false;
                b"250 kept\r\n"
            }
            (true, _) => continue,
            (false, "DATA") => {
                in_data = true;
                b"354 go on\r\n"
            }
            (false, "QUIT") => break,
            (false, _) => b"250 fine\r\n",
        };
        write.write_all(response).await.unwrap();
        if received.ends_with("\n.\n") {
            break;
        }
    }
    received
}

#[tokio::test]
async fn a_message_is_delivered_with_its_text() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}", listener.local_addr().unwrap());
    let mail = SmtpMailer::new(&url, "Shop <shop@example.com>").unwrap();
    let message = Email {
        to: "ann@example.com".to_owned(),
        subject: "Grüße\r\nBcc: all@example.com".to_owned(),
        text: "Ein Täßchen\n.\nTee?\n".to_owned(),
    };
    let server = tokio::spawn(serve_one_message(listener));
    mail.send(&message).await.unwrap();
    let received = server.await.unwrap();
    assert!(
        received.contains("MAIL FROM:<shop@example.com>"),
        "{received}"
    );
    assert!(received.contains("RCPT TO:<ann@example.com>"), "{received}");
    assert_eq!(received.matches("RCPT TO").count(), 1);
    assert!(
        !received.contains("\nBcc:"),
        "a header was smuggled in: {received}"
    );
}

#[tokio::test]
async fn an_unreachable_server_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}", listener.local_addr().unwrap());
    drop(listener);
    let mail = SmtpMailer::new(&url, "shop@example.com").unwrap();
    let message = Email {
        to: "ann@example.com".to_owned(),
        subject: "s".to_owned(),
        text: "t".to_owned(),
    };
    assert!(mail.send(&message).await.is_err());
}
