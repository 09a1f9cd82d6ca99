//! Measures the verification of tokens whose issuer's keys are loaded: `verify_speed` prints a line
//! for each signature algorithm.

use std::collections::HashMap;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tidegate_issuers::{Issuer, Network};

/// Keys, and a token for each algorithm.
const GOLDEN: &str = include_str!("../tests/golden_tokens.json");
/// The time at which these tokens are valid, in seconds since 1970.
const VALID_AT: u64 = 1_500;
const ROUNDS: u32 = 2_000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let golden: Value = serde_json::from_str(GOLDEN)?;
    let keys = serve(json!({"keys": golden["keys"]}).to_string())?;
    let settings = json!({
        "issuer": "http://127.0.0.1:1", "audience": ["api"], "jwks_url": keys,
        "algorithms": ["RS256", "ES256", "EdDSA"],
    });
    let issuer = Issuer::new(serde_json::from_value(settings)?, Network::AllowPrivate)?;
    for algorithm in ["RS256", "ES256", "EdDSA"] {
        let token = golden["tokens"][algorithm].as_str().unwrap_or_default();
        let (cold, cached) = measure(&issuer, token).await?;
        let line = format!("{algorithm}: cold {cold:.1} us, cached {cached:.2} us");
        writeln!(std::io::stdout(), "{line}")?;
    }
    Ok(())
}

/// Microseconds for a verification, and for looking a verified token up and checking it again.
async fn measure(issuer: &Issuer, token: &str) -> Result<(f64, f64)> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(VALID_AT);
    // The first verification loads the keys.
    let verified = issuer.verify(token, now).await?;
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        black_box(issuer.verify(black_box(token), now).await?);
    }
    let cold = begun.elapsed();
    let cache = HashMap::from([(token.to_owned(), verified)]);
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        let known = cache.get(black_box(token)).ok_or("the token is lost")?;
        black_box(issuer.recheck(known, now)?);
    }
    Ok((micros(cold), micros(begun.elapsed())))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6 / f64::from(ROUNDS)
}

/// Serves one response from this machine, and returns its URL.
fn serve(body: String) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/keys", listener.local_addr()?);
    std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let _request = stream.read(&mut [0; 4_096])?;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes())
    });
    Ok(url)
}
