//! Tests of the arithmetic.
