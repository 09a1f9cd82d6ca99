//! Measures the service beside the database.

fn main() {}
