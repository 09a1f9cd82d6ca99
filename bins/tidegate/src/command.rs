//! The commands other than `serve`, `up` and `demo`.

mod client;
mod cluster;
mod doctor;
mod feed;
mod help;
mod issuer;
mod key;
mod tenant;
mod token;
mod user;

use std::io::Write as _;

use tidegate_admin::is_unprintable;

use crate::cli_error::Result;

pub(crate) use client::run as client;
pub(crate) use cluster::run as cluster;
pub(crate) use doctor::run as doctor;
pub(crate) use feed::run as feed;
pub(crate) use help::{completions, manual, settings as settings_help};
pub(crate) use issuer::run as issuer;
pub(crate) use key::run as key;
pub(crate) use tenant::{
    create as create_tenant, drop as drop_tenant, owner_role, refuse_known, run as tenant,
    run_adoption,
};
pub(crate) use token::run as token;
pub(crate) use user::{create as create_user, run as user};

/// Prints to the standard output, with unprintable characters escaped.
pub(crate) fn print(text: impl std::fmt::Display) -> Result {
    let mut stdout = std::io::stdout().lock();
    let written = write!(stdout, "{}", printable(&text.to_string())).and_then(|()| stdout.flush());
    match written {
        // The reader has closed the pipe, as `head` does when it has enough lines. This is no
        // error.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Quotes a text if that is necessary for a shell to read it as one word.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "_-./:@+,=".contains(char);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Escapes unprintable characters except line breaks, so that a terminal does not interpret them.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, |char| is_unprintable(char) && char != '\n')
}

/// Escapes unprintable characters, including line breaks.
pub(crate) fn single_line(text: &str) -> String {
    escaped(text, is_unprintable)
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    text.chars().fold(String::new(), |mut line, char| {
        if is_escaped(char) {
            line.extend(char.escape_unicode());
        } else {
            line.push(char);
        }
        line
    })
}

fn unless_empty(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// Prints rows below a heading, in columns.
fn print_table(heading: &[&str], rows: &[Vec<String>]) -> Result {
    let heading: Vec<String> = heading.iter().map(ToString::to_string).collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| single_line(cell)).collect())
        .collect();
    let all = || std::iter::once(&heading).chain(&rows);
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

/// Formats a point in time as text in the form of RFC 3339, in UTC.
fn time(at: tidegate_identity::Timestamp) -> String {
    let whole = jiff::Timestamp::from_second(at.seconds());
    whole.map_or_else(|_| at.to_string(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_reach_no_terminal() {
        assert_eq!(
            printable("a\u{1b}[2Jb\n\u{9b}é\u{7f}"),
            "a\\u{1b}[2Jb\n\\u{9b}é\\u{7f}"
        );
        assert_eq!(single_line("a\nb"), "a\\u{a}b");
    }

    #[test]
    fn a_name_is_one_word_of_a_shell_command() {
        for (name, word) in [
            ("shop", "shop"),
            ("größe", "größe"),
            ("my shop", "'my shop'"),
            ("it's", "'it'\\''s'"),
            ("$(reboot)", "'$(reboot)'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(name), word);
        }
    }
}
