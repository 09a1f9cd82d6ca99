//! The checks of `/readyz`.

use tidegate_sql::BoxFuture;

/// Checks a part of the service that may be unavailable for some time.
pub trait Probe: Send + Sync {
    /// The name of the part in the response.
    fn name(&self) -> &'static str;

    /// Whether the node needs this part to serve requests. Without an essential part the node is
    /// not ready. Without a part that is not essential, the node is only degraded.
    fn is_essential(&self) -> bool {
        true
    }

    /// The source that the part uses, such as `outbox` for change events; `None` if there is no
    /// choice of sources. The response reports it as `<name>_source`.
    fn source(&self) -> Option<&'static str> {
        None
    }

    /// Whether the part is available now.
    fn is_ready(&self) -> BoxFuture<'_, bool>;
}
