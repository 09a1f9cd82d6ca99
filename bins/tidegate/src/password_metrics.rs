//! Metrics of password hashing.

use std::fmt;
use std::sync::Arc;

use tidegate_identity::PasswordHasher;
use tidegate_server::MetricsSource;
use tidegate_server::text_format::write_metric;

/// Reports the number of passwords that the hasher of this node has hashed.
pub(crate) struct PasswordMetrics(pub(crate) Arc<PasswordHasher>);

impl MetricsSource for PasswordMetrics {
    fn write(&self, text: &mut String) -> fmt::Result {
        let metric = ("tidegate_password_hashes_total", "counter");
        let help = "Passwords that were hashed or checked, those of unknown users included.";
        write_metric(text, metric, help, self.0.completed())
    }
}
