//! Changes how many connections the executor may open.

use tidegate_pool::Settings;

use super::UserExecutor;

impl UserExecutor {
    /// Changes the limit on open connections with [`tidegate_pool::Pool::set_capacity`]. Returns
    /// how many connections above the limit are in use. The pool closes these connections when they
    /// are returned.
    pub fn set_capacity(&self, capacity: usize) -> usize {
        self.callers.resize(&Settings {
            capacity,
            ..self.pool.settings().clone()
        });
        self.pool.set_capacity(capacity)
    }
}
