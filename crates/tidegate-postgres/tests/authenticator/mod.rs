//! Shared connections: who may use them, and when.

mod attack;
mod doctor;
mod fixture;
mod provision;
mod scale;
mod trust;
