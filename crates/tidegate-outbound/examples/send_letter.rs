//! Sends a letter through an SMTP server.
//!
//! `cargo run -p tidegate-outbound --example send_letter -- smtp://127.0.0.1:2525 me@example.com`

use tidegate_oauth::{Letter, Mail as _};
use tidegate_outbound::SmtpMail;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("say where the server is, and to whom the letter goes".into());
    };
    let mail = SmtpMail::new(&url, "Tidegate <tidegate@example.com>")?;
    let letter = Letter {
        to,
        subject: "High water at six".to_owned(),
        text: "Bring a boat.\n".to_owned(),
    };
    Ok(mail.send(&letter).await?)
}
