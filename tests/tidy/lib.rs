//! The architecture as a test: see `tests/`.
