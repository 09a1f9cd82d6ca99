//! Builds the text for PostgreSQL, and records where it differs from the caller's text.

use std::collections::HashMap;
use std::fmt::Write;

use super::lexer::{Unreadable, continues_word};
use super::{Kind, Purity, Statement};

/// The largest number of parameters. PostgreSQL counts them in 16 bits.
const MAX_PLACEHOLDERS: usize = 65_535;

/// If there are at least this number of names, they are looked up by hash.
const MANY_NAMES: usize = 16;

pub(super) struct Rewrite<'a> {
    q: &'a str,
    /// The number of bytes of `q` that were copied or replaced so far.
    copied: usize,
    text: String,
    shifts: Vec<(u32, i32)>,
    ahead: i32,
    names: Vec<&'a str>,
    index: HashMap<&'a str, usize>,
}

impl<'a> Rewrite<'a> {
    pub(super) fn new(q: &'a str) -> Self {
        Self {
            q,
            copied: 0,
            text: String::new(),
            shifts: Vec::new(),
            ahead: 0,
            names: Vec::new(),
            index: HashMap::new(),
        }
    }

    /// Replaces a placeholder by `$n`.
    pub(super) fn placeholder(&mut self, start: usize, name: &'a str) -> Result<(), Unreadable> {
        let number = self.number(name);
        if number > MAX_PLACEHOLDERS {
            return Err(Unreadable {
                what: "one placeholder more than 65,535",
                at: start,
            });
        }
        self.copy_to(start);
        if self
            .text
            .as_bytes()
            .last()
            .is_some_and(|byte| continues_word(*byte))
        {
            // A space is added, because without it `a:b` would become the identifier `a$1`.
            self.text.push(' ');
            self.shift(-1);
        }
        let before = self.text.len();
        let _ = write!(self.text, "${number}");
        let written = self.text.len() - before;
        self.skip(1 + name.len(), written);
        Ok(())
    }

    /// The number of the placeholder with this name, from 1.
    fn number(&mut self, name: &'a str) -> usize {
        if self.names.len() < MANY_NAMES {
            if let Some(index) = self.names.iter().position(|known| *known == name) {
                return index + 1;
            }
            self.names.push(name);
            return self.names.len();
        }
        if self.index.is_empty() {
            self.index.extend(
                self.names
                    .iter()
                    .enumerate()
                    .map(|(index, name)| (*name, index + 1)),
            );
        }
        let next = self.names.len() + 1;
        let number = *self.index.entry(name).or_insert(next);
        if number == next {
            self.names.push(name);
        }
        number
    }

    /// Replaces a piece of ASCII text by other ASCII text.
    pub(super) fn replace(&mut self, start: usize, length: usize, by: &str) {
        self.copy_to(start);
        self.text.push_str(by);
        self.skip(length, by.len());
    }

    fn copy_to(&mut self, end: usize) {
        if self.text.is_empty() {
            self.text.reserve(self.q.len() + 16);
        }
        self.text.push_str(&self.q[self.copied..end]);
        self.copied = end;
    }

    /// Records that `length` bytes were replaced by `written` bytes. Both texts are ASCII, so bytes
    /// are characters.
    fn skip(&mut self, length: usize, written: usize) {
        self.copied += length;
        let length = i32::try_from(length).unwrap_or(i32::MAX);
        let written = i32::try_from(written).unwrap_or(i32::MAX);
        self.shift(length - written);
    }

    fn shift(&mut self, by: i32) {
        if by != 0 {
            self.ahead = self.ahead.saturating_add(by);
            self.shifts.push((
                u32::try_from(self.text.len()).unwrap_or(u32::MAX),
                self.ahead,
            ));
        }
    }

    pub(super) fn finish(mut self, kind: Kind, purity: Purity) -> Statement {
        self.copy_to(self.q.len());
        let placeholders = self.names.into_iter().map(str::to_owned).collect();
        Statement {
            text: self.text,
            placeholders,
            shifts: self.shifts,
            kind,
            purity,
            plain: false,
            calls: false,
            calls_claims: false,
            fills_rows: false,
            refused_for_shared: None,
            names_login: false,
        }
    }
}
