//! The commands but `serve` and `demo`: each asks, acts and prints.

mod client;
mod doctor;
mod feed;
mod key;
mod tenant;
mod user;

use std::io::Write as _;

use crate::failure::Result;

pub(crate) use client::run as client;
pub(crate) use doctor::run as doctor;
pub(crate) use feed::run as feed;
pub(crate) use key::run as key;
pub(crate) use tenant::{create as create_tenant, drop as drop_tenant, run as tenant};
pub(crate) use user::{create as create_user, run as user};

/// Prints to the standard output.
pub(crate) fn print(text: impl std::fmt::Display) -> Result {
    let mut stdout = std::io::stdout().lock();
    write!(stdout, "{text}")?;
    stdout.flush()?;
    Ok(())
}

/// Prints rows below a heading, in columns.
fn print_table(heading: &[&str], rows: &[Vec<String>]) -> Result {
    let heading: Vec<String> = heading.iter().map(ToString::to_string).collect();
    let all = || std::iter::once(&heading).chain(rows);
    let width = |column: usize| {
        all()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let mut text = String::new();
    for row in all() {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    print(text)
}

/// A point in time as people read it.
fn time(at: tidegate_oauth::Timestamp) -> String {
    let whole = jiff::Timestamp::from_second(at.seconds());
    whole.map_or_else(|_| at.to_string(), |at| at.to_string())
}
