//! Shared connections: who may use them, and when.

mod attack;
mod fixture;
mod provision;
mod trust;
