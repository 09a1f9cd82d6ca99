//! Tests who may use shared connections, and when.

mod attack;
mod code;
mod doctor;
mod fixture;
mod login_names;
mod provision;
mod releases;
mod reports;
mod scale;
mod trust;
mod waiting;
