//! Shared connections: who may use them, and when.

mod attack;
mod code;
mod doctor;
mod fixture;
mod provision;
mod scale;
mod trust;
mod waiting;
