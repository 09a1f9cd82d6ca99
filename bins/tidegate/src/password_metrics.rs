//! Metrics of password hashing.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use tidegate_identity::PasswordHasher;
use tidegate_server::MetricsSource;

/// Reports the number of passwords that the hasher of this node has hashed.
pub(crate) struct PasswordMetrics(pub(crate) Arc<PasswordHasher>);

impl MetricsSource for PasswordMetrics {
    fn write(&self, text: &mut String) -> fmt::Result {
        let name = "tidegate_password_hashes_total";
        let count = self.0.completed();
        writeln!(
            text,
            "# HELP {name} Passwords that were hashed or checked, those of unknown users included.\n\
             # TYPE {name} counter\n{name} {count}"
        )
    }
}
