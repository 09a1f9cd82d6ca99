//! Measures exports of ten million rows as csv and ndjson, and COPY for comparison.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::connection::Connection;
use crate::service::Service;
use crate::{Result, process};

const ROWS: &str = "select i as id, 'name of row ' || i as name, i % 1000 as n, \
                    timestamptz '2024-01-01' + i * interval '1 second' as created_at \
                    from generate_series(1, 10000000) i";

/// Exports the rows in each format. Prints the time and the service's peak memory for each, and the
/// time of COPY.
pub(crate) async fn compare(service: &Service) -> Result<()> {
    let copy = copy(service)?;
    println!("\nexport of 10,000,000 rows of 4 columns; COPY TO STDOUT takes {copy:.1} s");
    for media_type in ["text/csv", "application/x-ndjson"] {
        let body = format!(r#"{{"q":"{ROWS}"}}"#);
        let request = format!(
            "POST /api/v4/sql HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Accept: {media_type}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            service.address,
            service.owner_token,
            body.len()
        );
        process::reset_peak(service.server)?;
        let started = Instant::now();
        let size = Connection::open(service.address)
            .await?
            .exchange(request.as_bytes())
            .await?
            .size;
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{media_type:<24} {seconds:>6.1} s  {:.2} of COPY  {:>6} MB  peak {} MiB",
            seconds / copy,
            size / 1_000_000,
            process::peak(service.server)? >> 20
        );
    }
    Ok(())
}

fn copy(service: &Service) -> Result<f64> {
    let psql = service.pgbench.with_file_name("psql");
    let started = Instant::now();
    let status = Command::new(psql)
        .args([
            "-q",
            "-c",
            &format!("copy ({ROWS}) to stdout"),
            &service.floor_url,
        ])
        .stdout(Stdio::null())
        .status()?;
    if status.success() {
        Ok(started.elapsed().as_secs_f64())
    } else {
        Err("psql failed".into())
    }
}
