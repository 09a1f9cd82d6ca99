//! Reads the state of NATS for an operator.

use std::sync::Arc;

use serde_json::Value;

use crate::connection;
use crate::error::BusResult;
use crate::nats::Nats;
use crate::seal::Seal;
use crate::settings::BusSettings;
use crate::shared;

/// The messages that JetStream keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusReport {
    /// How many servers have all messages.
    pub copies: usize,
    /// How many servers should have all messages.
    pub expected_copies: u64,
    /// The number of messages of all databases.
    pub messages: u64,
    /// The size of one copy of the messages in bytes.
    pub bytes: u64,
}

impl BusReport {
    /// Connects to NATS and reads the state of the stream. Changes nothing. The report is empty if
    /// no node has created the stream yet.
    ///
    /// # Errors
    ///
    /// If no server can be used, or JetStream does not answer.
    pub async fn read(settings: &BusSettings) -> BusResult<Self> {
        let seal = Seal::new(settings.key.clone(), settings.session);
        let (name, subjects) = connection::stream(&shared::cell(&seal));
        let nats = Nats::connect(settings, (&name, &subjects), Arc::default()).await?;
        let info = nats.info().await?;
        Ok(info.as_ref().map(Self::of).unwrap_or_default())
    }

    /// Reads the report from JetStream's answer to `STREAM.INFO` (NATS, "JetStream wire API
    /// Reference").
    fn of(info: &Value) -> Self {
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let others = info["cluster"]["replicas"].as_array();
        // The answer lists the copies except the leader's. A server without a cluster lists none.
        let current = others.into_iter().flatten().filter(|other| {
            other["current"].as_bool() == Some(true) && other["offline"].as_bool() != Some(true)
        });
        Self {
            copies: 1 + current.count(),
            expected_copies: number(&info["config"]["num_replicas"]),
            messages: number(&info["state"]["messages"]),
            bytes: number(&info["state"]["bytes"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::BusReport;

    #[test]
    fn a_copy_counts_if_it_is_complete_and_can_be_reached() {
        let copies = |cluster| {
            let info = json!({
                "config": {"num_replicas": 3},
                "state": {"messages": 5, "bytes": 700},
                "cluster": cluster,
            });
            let report = BusReport::of(&info);
            assert_eq!(
                (report.expected_copies, report.messages, report.bytes),
                (3, 5, 700)
            );
            report.copies
        };
        let replicas = |one, two| json!({"leader": "a", "replicas": [one, two]});
        let current = json!({"name": "b", "current": true});
        let behind = json!({"name": "c", "current": false, "lag": 7});
        let offline = json!({"name": "c", "current": true, "offline": true});
        assert_eq!(copies(replicas(current.clone(), current.clone())), 3);
        assert_eq!(copies(replicas(current.clone(), behind)), 2);
        assert_eq!(copies(replicas(current, offline)), 2);
        assert_eq!(copies(json!(null)), 1);
    }
}
