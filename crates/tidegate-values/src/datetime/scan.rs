//! Scans numbers and ISO 8601 parts from the start of a text.

use super::calendar::{Civil, SECOND};

/// A scanner of a text, which holds the bytes that were not read yet. Its functions return `None`
/// if the text does not continue as they expect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn peek(self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Consumes `byte` if the text continues with it.
    pub(crate) fn literal(&mut self, byte: u8) -> Option<()> {
        self.word(&[byte])
    }

    /// Consumes `word`, in any letter case, if the text continues with it.
    pub(crate) fn word(&mut self, word: &[u8]) -> Option<()> {
        let (head, rest) = self.rest.split_at_checked(word.len())?;
        head.eq_ignore_ascii_case(word).then(|| self.rest = rest)
    }

    /// Consumes the longest run of bytes that `wanted` accepts.
    pub(crate) fn run(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self
            .rest
            .iter()
            .position(|&byte| !wanted(byte))
            .unwrap_or(self.rest.len());
        let (head, rest) = self.rest.split_at(end);
        self.rest = rest;
        head
    }

    /// Consumes `least` to `most` digits, where `most` is at most 18. Returns the value of the
    /// digits and how many there were.
    pub(crate) fn digits(&mut self, least: usize, most: usize) -> Option<(i64, usize)> {
        let count = self
            .rest
            .iter()
            .take(most)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if count < least {
            return None;
        }
        let (head, rest) = self.rest.split_at(count);
        self.rest = rest;
        let value = head
            .iter()
            .fold(0, |value, byte| value * 10 + i64::from(byte - b'0'));
        Some((value, count))
    }

    /// Consumes `+` or `-` as a sign; returns 1 or -1.
    pub(crate) fn sign(&mut self) -> Option<i64> {
        let sign = match self.peek()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        self.rest = &self.rest[1..];
        Some(sign)
    }

    /// Consumes a date `Y…-MM-DD`, but not a ` BC` after it; returns year, month and day.
    pub(super) fn iso_day(&mut self) -> Option<(i64, i64, i64)> {
        let (year, _) = self.digits(1, 7)?;
        self.literal(b'-')?;
        let (month, _) = self.digits(2, 2)?;
        self.literal(b'-')?;
        let (day, _) = self.digits(2, 2)?;
        Some((year, month, day))
    }

    /// Consumes ` BC` if the text continues with it. Returns the date with the given parts, or
    /// `None` if there is no such date. If ` BC` was consumed, the year is BC.
    pub(super) fn iso_era(&mut self, (year, month, day): (i64, i64, i64)) -> Option<Civil> {
        let year = if self.word(b" BC").is_some() {
            1 - year
        } else {
            year
        };
        Civil::checked(year, month, day)
    }

    /// Consumes a date `Y…-MM-DD[ BC]`.
    pub(super) fn iso_date(&mut self) -> Option<Civil> {
        let day = self.iso_day()?;
        self.iso_era(day)
    }

    /// Consumes `HH:MM:SS[.f…]`; returns microseconds since midnight.
    pub(super) fn iso_time(&mut self) -> Option<i64> {
        let (hour, _) = self.digits(2, 2)?;
        self.literal(b':')?;
        let (minute, _) = self.digits(2, 2)?;
        self.literal(b':')?;
        let (second, _) = self.digits(2, 2)?;
        Some(((hour * 60 + minute) * 60 + second) * SECOND + self.fraction())
    }

    /// Consumes `.f…` with up to six digits; returns microseconds, 0 without a fraction.
    pub(crate) fn fraction(&mut self) -> i64 {
        let before = *self;
        if self.literal(b'.').is_none() {
            return 0;
        }
        let Some((value, count)) = self.digits(1, 6) else {
            *self = before;
            return 0;
        };
        (count..6).fold(value, |value, _| value * 10)
    }

    /// Consumes `±HH[[:]MM[[:]SS]]`; returns seconds east of UTC.
    pub(crate) fn offset(&mut self) -> Option<i32> {
        let sign = self.sign()?;
        let (hours, _) = self.digits(1, 2)?;
        let mut seconds = hours * 3600;
        for unit in [60, 1] {
            let before = *self;
            let _ = self.literal(b':');
            let Some((value, _)) = self.digits(2, 2) else {
                *self = before;
                break;
            };
            seconds += value * unit;
        }
        i32::try_from(sign * seconds).ok()
    }

    /// Consumes one character, which may have several bytes; returns its bytes. At the end of the
    /// text, it returns no bytes.
    pub(crate) fn character(&mut self) -> &'a [u8] {
        let inner = self
            .rest
            .iter()
            .skip(1)
            .take_while(|byte| **byte & 0xC0 == 0x80)
            .count();
        let (head, rest) = self.rest.split_at((inner + 1).min(self.rest.len()));
        self.rest = rest;
        head
    }

    /// Consumes one of `names`, written in full or as its first three letters; returns its index.
    pub(crate) fn name(&mut self, names: &[&str]) -> Option<i64> {
        let at = names.iter().position(|name| {
            self.word(name.as_bytes())
                .or_else(|| self.word(&name.as_bytes()[..3]))
                .is_some()
        })?;
        i64::try_from(at).ok()
    }
}
