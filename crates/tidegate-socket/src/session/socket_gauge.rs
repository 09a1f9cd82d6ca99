//! The gauge of open sockets.

use tidegate_http::app::App;

/// Counts a socket in the gauge of open sockets until it is dropped.
pub(super) struct SocketGauge(App);

impl SocketGauge {
    pub(super) fn new(app: &App) -> Self {
        app.metrics().socket(1);
        Self(app.clone())
    }
}

impl Drop for SocketGauge {
    fn drop(&mut self) {
        self.0.metrics().socket(-1);
    }
}
