//! Sends a message through an SMTP server.
//!
//! `cargo run -p tidegate-mail --example send_email -- smtp://127.0.0.1:2525 me@example.com`

use tidegate_identity::{Email, Mailer as _};
use tidegate_mail::SmtpMailer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: send_email SMTP_URL RECIPIENT".into());
    };
    let mailer = SmtpMailer::new(&url, "Tidegate <tidegate@example.com>")?;
    let email = Email {
        to,
        subject: "High water at six".to_owned(),
        text: "Bring a boat.\n".to_owned(),
    };
    Ok(mailer.send(&email).await?)
}
