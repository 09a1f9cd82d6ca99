//! `tidegate demo` as a newcomer meets it.
