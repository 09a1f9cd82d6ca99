//! The Tidegate server and its command line.

fn main() {}
