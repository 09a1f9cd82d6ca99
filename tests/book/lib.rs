//! Runs the commands and programs of the documents: see `tests/`.
