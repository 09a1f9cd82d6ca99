//! LIKE and ILIKE (PostgreSQL, "Pattern Matching").

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memmem::Finder;

use super::case_folding::CaseFolding;

/// The maximum length, in bytes, of a piece that contains `_`. A pattern with a longer piece is
/// refused, because matching it could take long and cannot be cancelled here.
const MAX_PIECE: usize = 256;

/// A pattern, split into pieces at each `%`.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// The piece with which the text must begin; the whole pattern if it has no `%`.
    first: Piece,
    /// The pieces that must occur between `first` and `last`, in this order.
    middle: Box<[Piece]>,
    /// The piece with which the text must end; `None` if the pattern has no `%`.
    last: Option<Piece>,
    fold: Fold,
    /// The case folding of the column's collation; `None` if it was not set.
    case_folding: Option<Arc<CaseFolding>>,
}

/// A part of a pattern between two `%`.
#[derive(Clone, Debug)]
enum Piece {
    /// Bytes without wildcards.
    Literal(Box<Finder<'static>>),
    /// Bytes and `_` wildcards.
    Steps(Box<[PatternItem]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternItem {
    /// Matches exactly this byte.
    Byte(u8),
    /// Matches any single character.
    One,
}

/// How letter case is treated in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    /// The comparison is case-sensitive.
    None,
    /// Letters are folded by the rules of the column's collation. The pattern has only ASCII
    /// letters.
    Language,
}

impl Pattern {
    /// Compiles a `LIKE` pattern with `%`, `_` and the backslash. `None` for a pattern that would
    /// take too long to match.
    pub(super) fn like(pattern: &str, fold: Fold) -> Option<Self> {
        let mut pieces = vec![Vec::new()];
        let mut bytes = pattern.bytes();
        while let Some(byte) = bytes.next() {
            let step = match byte {
                b'%' => {
                    pieces.push(Vec::new());
                    continue;
                }
                b'_' => PatternItem::One,
                b'\\' => match bytes.next() {
                    Some(byte) => fold.step(byte),
                    None => continue,
                },
                _ => fold.step(byte),
            };
            if let Some(piece) = pieces.last_mut() {
                piece.push(step);
            }
        }
        let too_long =
            |piece: &Vec<PatternItem>| piece.len() > MAX_PIECE && piece.contains(&PatternItem::One);
        (!pieces.iter().any(too_long)).then(|| Self::of_pieces(&pieces, fold))
    }

    /// A pattern that matches `text`. With `open_start`, other text may come before it, and with
    /// `open_end` after it.
    pub(super) fn substring(text: &str, open_start: bool, open_end: bool) -> Self {
        let mut pieces = vec![text.bytes().map(PatternItem::Byte).collect()];
        if open_start {
            pieces.insert(0, Vec::new());
        }
        if open_end {
            pieces.push(Vec::new());
        }
        Self::of_pieces(&pieces, Fold::None)
    }

    fn of_pieces(pieces: &[Vec<PatternItem>], fold: Fold) -> Self {
        let (first, rest) = pieces
            .split_first()
            .map_or((&[][..], &[][..]), |(first, rest)| (first, rest));
        let (last, middle) = match rest.split_last() {
            Some((last, middle)) => (Some(Piece::new(last)), middle),
            None => (None, rest),
        };
        let middle = middle.iter().filter(|piece| !piece.is_empty());
        Self {
            first: Piece::new(first),
            middle: middle.map(|piece| Piece::new(piece)).collect(),
            last,
            fold,
            case_folding: None,
        }
    }

    /// Whether letters are folded by the rules of the collation.
    pub(super) fn folds(&self) -> bool {
        self.fold == Fold::Language
    }

    pub(super) fn set_case_folding(&mut self, case_folding: Arc<CaseFolding>) {
        self.case_folding = Some(case_folding);
    }

    /// Whether the whole text matches. `None` if the result depends on a case folding that was not
    /// set.
    pub(super) fn matches(&self, text: &[u8]) -> Option<bool> {
        let text = match self.fold {
            Fold::None => Cow::Borrowed(text),
            Fold::Language if folds_to_ascii(text) => {
                Cow::Owned(self.case_folding.as_ref()?.fold(text))
            }
            Fold::Language => Cow::Owned(text.to_ascii_lowercase()),
        };
        Some(self.is_matched(&text))
    }

    /// Whether the text matches, after its letters were folded. Matches each piece at its first
    /// possible position, which leaves the most text for the pieces after it.
    fn is_matched(&self, text: &[u8]) -> bool {
        let Some(mut at) = self.first.end(text, 0) else {
            return false;
        };
        let Some(last) = &self.last else {
            return at == text.len();
        };
        for piece in &self.middle {
            let Some(end) = piece.find(text, at) else {
                return false;
            };
            at = end;
        }
        last.before_end(text).is_some_and(|start| start >= at)
    }
}

impl Piece {
    fn new(steps: &[PatternItem]) -> Self {
        let bytes = steps.iter().map(|step| match step {
            PatternItem::Byte(byte) => Some(*byte),
            PatternItem::One => None,
        });
        match bytes.collect::<Option<Vec<_>>>() {
            Some(bytes) => Self::Literal(Box::new(Finder::new(&bytes).into_owned())),
            None => Self::Steps(steps.into()),
        }
    }

    /// The offset after the piece; `None` if the piece does not match at `at`.
    fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        match self {
            Self::Literal(finder) => text
                .get(at..)?
                .starts_with(finder.needle())
                .then(|| at + finder.needle().len()),
            Self::Steps(steps) => steps.iter().try_fold(at, |at, step| match step {
                PatternItem::Byte(byte) => (text.get(at) == Some(byte)).then_some(at + 1),
                PatternItem::One => after_character(text, at),
            }),
        }
    }

    /// The offset after the first match of the piece from `at` on; `None` if there is no match.
    fn find(&self, text: &[u8], at: usize) -> Option<usize> {
        if let Self::Literal(finder) = self {
            let found = finder.find(text.get(at..)?)?;
            return Some(at + found + finder.needle().len());
        }
        let mut start = at;
        loop {
            if let Some(end) = self.end(text, start) {
                return Some(end);
            }
            start = after_character(text, start)?;
        }
    }

    /// The offset at which the piece begins if the text ends with it; `None` if it does not.
    fn before_end(&self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Literal(finder) => text
                .ends_with(finder.needle())
                .then(|| text.len() - finder.needle().len()),
            Self::Steps(steps) => steps
                .iter()
                .rev()
                .try_fold(text.len(), |at, step| match step {
                    PatternItem::Byte(byte) => {
                        (text.get(at.checked_sub(1)?) == Some(byte)).then(|| at - 1)
                    }
                    PatternItem::One => {
                        text.get(..at)?.iter().rposition(|byte| byte & 0xC0 != 0x80)
                    }
                }),
        }
    }
}

impl Fold {
    fn step(self, byte: u8) -> PatternItem {
        PatternItem::Byte(match self {
            Self::None => byte,
            Self::Language => byte.to_ascii_lowercase(),
        })
    }
}

/// The offset after the character at `at`; `None` at the end of the text.
fn after_character(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
    let inner = rest[1..].iter().take_while(|byte| **byte & 0xC0 == 0x80);
    Some(at + 1 + inner.count())
}

/// Whether the text has a character beyond ASCII whose lower case is or begins with an ASCII
/// letter: `İ` (U+0130) or the Kelvin sign (U+212A).
fn folds_to_ascii(text: &[u8]) -> bool {
    let holds = |letter: &str| memchr::memmem::find(text, letter.as_bytes()).is_some();
    !text.is_ascii() && (holds("\u{130}") || holds("\u{212a}"))
}

#[cfg(test)]
mod tests {
    use super::{Fold, Pattern};

    fn like(pattern: &str, text: &str) -> Option<bool> {
        Pattern::like(pattern, Fold::None)?.matches(text.as_bytes())
    }

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("_", "", false),
            ("_", "é", true),
            ("__", "é", false),
            ("a%c", "abc", true),
            ("a%c", "abcd", false),
            ("a%a", "a", false),
            ("%b%", "abc", true),
            ("a%b%c", "axbxbxc", true),
            ("%ab", "aab", true),
            ("%_b", "b", false),
            ("%_b", "éb", true),
            ("%a_c%", "abababc", true),
            ("%_%_%", "a", false),
            ("\\%", "%", true),
            ("\\%", "a", false),
            ("\\a", "a", true),
            ("a\\_b", "axb", false),
            ("\\\\", "\\", true),
            ("é%", "éa", true),
            ("A", "a", false),
        ] {
            assert_eq!(like(pattern, text), Some(expected), "{text} like {pattern}");
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        assert_eq!(like(&"%a".repeat(500), &"a".repeat(499)), Some(false));
        let text = "a".repeat(1_000_000);
        assert_eq!(
            like(&format!("{}b", "%a".repeat(50_000)), &text),
            Some(false)
        );
        assert_eq!(
            like(&format!("%{}b%", "a".repeat(100_000)), &text),
            Some(false)
        );
        assert_eq!(like(&format!("%{}_b%", "a".repeat(300)), &text), None);
    }

    #[test]
    fn characters_that_fold_into_ascii_are_undecided() {
        let pattern = Pattern::like("K%", Fold::Language).unwrap();
        assert_eq!(pattern.matches(b"kelvin"), Some(true));
        assert_eq!(pattern.matches("éé".as_bytes()), Some(false));
        assert_eq!(pattern.matches("\u{212a}elvin".as_bytes()), None);
    }
}
