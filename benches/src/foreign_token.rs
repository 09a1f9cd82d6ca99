//! Measures the verification of tokens of an external issuer whose keys are loaded, in this process
//! and without the service.

use std::collections::HashMap;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tidegate_issuers::{Issuer, Network};

use crate::Result;
use crate::arguments::Arguments;
use crate::statistics::median;

const NAME: &str = "foreign token";
/// Keys, and a token for each algorithm.
const GOLDEN: &str = include_str!("../../crates/tidegate-issuers/tests/golden_tokens.json");
/// A time at which these tokens are valid, in seconds since 1970.
const VALID_AT: u64 = 1_500;
const ALGORITHMS: [&str; 3] = ["RS256", "ES256", "EdDSA"];
/// The number of verifications in one slice.
const ROUNDS: u32 = 2_000;
/// The aims: a verification takes at most this many microseconds, without and with the cache.
const COLD_AIM: f64 = 300.0;
const CACHED_AIM: f64 = 2.0;

/// Measures and prints the time of a verification, unless only other cases are selected. Slices of
/// the algorithms take turns.
pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.wants(NAME) {
        return Ok(());
    }
    let golden: Value = serde_json::from_str(GOLDEN)?;
    let settings = json!({
        "issuer": "http://127.0.0.1:1", "audience": ["api"], "algorithms": ALGORITHMS,
        "jwks_url": serve(json!({"keys": golden["keys"]}).to_string())?,
    });
    let issuer = Issuer::new(serde_json::from_value(settings)?, Network::AllowPrivate)?;
    let mut slices = ALGORITHMS.map(|_| (Vec::new(), Vec::new()));
    for _ in 0..arguments.slices() {
        for (algorithm, (cold, cached)) in ALGORITHMS.iter().zip(&mut slices) {
            let token = golden["tokens"][algorithm].as_str().unwrap_or_default();
            let times = slice(&issuer, token).await?;
            cold.push(times.0);
            cached.push(times.1);
        }
    }
    println!();
    for (algorithm, (cold, cached)) in ALGORITHMS.iter().zip(slices) {
        let (cold, cached) = (median(cold), median(cached));
        println!(
            "{NAME}, {algorithm}: cold {cold:.1} us, {}; cached {cached:.2} us, {}; medians of {} \
             slices",
            judged(cold, COLD_AIM),
            judged(cached, CACHED_AIM),
            arguments.slices()
        );
    }
    Ok(())
}

fn judged(cost: f64, aim: f64) -> String {
    let met = if cost <= aim { "met" } else { "missed" };
    format!("{met}: at most {aim:.0} us")
}

/// Microseconds of a verification, and of what a further request with the same token takes: the
/// lookup of the verified token, and the check of its times and keys.
async fn slice(issuer: &Issuer, token: &str) -> Result<(f64, f64)> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(VALID_AT);
    // The first verification of the first slice loads the keys.
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
    let cached = begun.elapsed();
    Ok((micros(cold), micros(cached)))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6 / f64::from(ROUNDS)
}

/// Serves one response on a free port, in a thread. Returns its URL.
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
