//! Letters over a real socket, to a server that writes down what it hears.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use tidegate_oauth::{Letter, Mail as _};
use tidegate_outbound::{Error, ProviderSettings, Providers, SmtpMail};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

#[test]
fn no_letter_crosses_a_network_in_the_clear() {
    for good in [
        "smtps://user:secret@smtp.example.com",
        "smtp://user:secret@smtp.example.com:587?tls=required",
        "smtp://127.0.0.1:2525",
        "smtp://[::1]:2525",
        "smtp://localhost",
    ] {
        assert!(SmtpMail::new(good, "a@example.com").is_ok(), "{good}");
    }
    for bad in [
        "smtp://smtp.example.com",
        "smtp://127.0.0.1@smtp.example.com:25",
        "smtp://smtp.example.com:587?tls=opportunistic",
        "smtp://127.0.0.1.example.com",
    ] {
        let refused = SmtpMail::new(bad, "a@example.com");
        assert!(matches!(refused, Err(Error::SmtpInTheClear(_))), "{bad}");
    }
    for bad in ["", "smtp.example.com", "https://smtp.example.com"] {
        let refused = SmtpMail::new(bad, "a@example.com");
        assert!(matches!(refused, Err(Error::SmtpAddress(_))), "{bad}");
    }
    let refused = SmtpMail::new("smtps://smtp.example.com", "nobody");
    assert!(matches!(refused, Err(Error::Sender(_))));
    let shown = format!("{:?}", SmtpMail::new("smtps://u:hunter2@h", "a@b.c"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn no_provider_is_believed_over_a_network_in_the_clear() {
    let (site, api) = ("https://github.com", "https://api.github.com");
    let ready = |addresses| Providers::new(vec![ProviderSettings::github(addresses, "id", "s")]);
    for good in [(site, api), ("http://127.0.0.1:9", "http://[::1]:9/api/v3")] {
        assert!(ready(good).is_ok(), "{good:?}");
    }
    for open in [
        "http://github.example",
        "http://127.0.0.1.example",
        "ftp://x",
    ] {
        for bad in [(open, api), (site, open)] {
            let refused = ready(bad);
            assert!(
                matches!(&refused, Err(Error::IssuerInTheClear(named)) if named == open),
                "{bad:?}"
            );
        }
    }
}

/// A server of one letter; returns all that it heard.
async fn hear(listener: TcpListener) -> String {
    let (mut socket, _) = listener.accept().await.unwrap();
    let (read, mut write) = socket.split();
    let mut lines = BufReader::new(read).lines();
    let (mut heard, mut in_data) = (String::new(), false);
    write.write_all(b"220 here\r\n").await.unwrap();
    while let Ok(Some(line)) = lines.next_line().await {
        heard.push_str(&line);
        heard.push('\n');
        let answer: &[u8] = match (in_data, line.as_str()) {
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
        write.write_all(answer).await.unwrap();
        if heard.ends_with("\n.\n") {
            break;
        }
    }
    heard
}

#[tokio::test]
async fn a_letter_arrives_with_its_words() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}", listener.local_addr().unwrap());
    let mail = SmtpMail::new(&url, "Shop <shop@example.com>").unwrap();
    let letter = Letter {
        to: "ann@example.com".to_owned(),
        subject: "Grüße\r\nBcc: all@example.com".to_owned(),
        text: "Ein Täßchen\n.\nTee?\n".to_owned(),
    };
    let server = tokio::spawn(hear(listener));
    mail.send(&letter).await.unwrap();
    let heard = server.await.unwrap();
    assert!(heard.contains("MAIL FROM:<shop@example.com>"), "{heard}");
    assert!(heard.contains("RCPT TO:<ann@example.com>"), "{heard}");
    assert_eq!(heard.matches("RCPT TO").count(), 1);
    assert!(
        !heard.contains("\nBcc:"),
        "a header was smuggled in: {heard}"
    );
}

#[tokio::test]
async fn a_server_that_is_away_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}", listener.local_addr().unwrap());
    drop(listener);
    let mail = SmtpMail::new(&url, "shop@example.com").unwrap();
    let letter = Letter {
        to: "ann@example.com".to_owned(),
        subject: "s".to_owned(),
        text: "t".to_owned(),
    };
    assert!(mail.send(&letter).await.is_err());
}
