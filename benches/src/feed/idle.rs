//! Measures the memory of an idle socket.

use std::time::Duration;

use super::subscribers::Subscribers;
use crate::service::Service;
use crate::{Result, process};

pub(crate) const NAME: &str = "feed idle sockets";
const SOCKETS: usize = 2000;

/// Opens idle sockets, without and with a subscription.
pub(crate) async fn measure(service: &Service) -> Result<()> {
    // The first subscriber starts the feed, which allocates buffers that it keeps.
    let query = "subscription { BenchFeedMessageAdded { id } }".to_owned();
    drop(Subscribers::open(service, &vec![vec![query.clone()]; 50]).await?);
    settle().await;
    // The baseline is read only once. Memory that the first measurement freed may still be
    // resident. A second baseline would include it, and the second result would be too small.
    let before = process::resident(service.server)?;
    for (what, queries) in [("", vec![]), (" with a subscription", vec![query])] {
        let subscribers = Subscribers::open(service, &vec![queries; SOCKETS]).await?;
        settle().await;
        let after = process::resident(service.server)?;
        println!(
            "{NAME}{what}: {:.1} KiB each ({SOCKETS} sockets: {} MiB resident, {} before)",
            after.saturating_sub(before) as f64 / SOCKETS as f64 / 1024.0,
            after >> 20,
            before >> 20,
        );
        drop(subscribers);
        settle().await;
    }
    Ok(())
}

/// Waits until freed memory has been returned to the system.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(3)).await;
}
