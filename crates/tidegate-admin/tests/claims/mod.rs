//! Tests the functions of claims that policies call.

mod attacks;
mod callers;
mod fixture;
mod provision;
