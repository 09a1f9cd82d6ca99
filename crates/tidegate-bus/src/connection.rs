//! Keeps the connection to NATS open and the stream in JetStream configured.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::timeout;
use tracing::{info, warn};

use crate::error::BusError;
use crate::nats::Nats;
use crate::shared::SharedBus;

/// The pause between attempts to connect, and between checks of the stream.
const PAUSE: Duration = Duration::from_secs(5);

/// Connects, with retries, and then checks the connection and the stream at an interval. Ends when
/// the bus is dropped.
pub(crate) async fn keep(shared: Weak<SharedBus>) {
    loop {
        let opened = {
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let problem = check(&shared).await;
            report(&shared, problem);
            shared.opened.clone()
        };
        // A reconnection ends the pause early, because the servers may have lost the stream.
        let _ = timeout(PAUSE, opened.notified()).await;
    }
}

async fn check(shared: &SharedBus) -> Option<String> {
    let nats = shared.nats.borrow().clone();
    let nats = match nats {
        Some(nats) => nats,
        None => match connect(shared).await {
            Ok(nats) => nats,
            Err(error) => return Some(error.to_string()),
        },
    };
    if !nats.is_connected() {
        return Some("the connection to the NATS servers of bus_url is broken".to_owned());
    }
    let ensured = nats.ensure_stream().await;
    let is_mute = matches!(ensured, Err(BusError::Request(_)));
    shared.is_mute.store(is_mute, Ordering::Relaxed);
    let problem = match ensured {
        Ok(()) if shared.is_stored() => return None,
        Ok(()) => BusError::NotStored,
        Err(error) => error,
    };
    Some(problem.to_string())
}

async fn connect(shared: &SharedBus) -> crate::BusResult<Arc<Nats>> {
    let (name, subjects) = stream(&shared.cell);
    let opened = shared.opened.clone();
    let nats = Nats::connect(&shared.settings, (&name, &subjects), opened).await?;
    let nats = Arc::new(nats);
    shared.nats.send_replace(Some(nats.clone()));
    info!("connected to the bus");
    Ok(nats)
}

/// The name of the stream in JetStream, and the subjects of its messages.
pub(crate) fn stream(cell: &str) -> (String, String) {
    (cell.replace('.', "_"), format!("{cell}.*.e"))
}

/// Logs a problem when it begins, changes or ends.
fn report(shared: &SharedBus, problem: Option<String>) {
    let mut known = shared.problem.lock();
    if *known == problem {
        return;
    }
    if let Some(problem) = &problem {
        warn!(
            problem,
            "the bus is degraded; nodes may read changes on their own"
        );
    } else {
        info!("the bus works again");
    }
    *known = problem;
}
