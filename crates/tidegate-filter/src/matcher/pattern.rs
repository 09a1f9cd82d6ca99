//! LIKE and ILIKE (PostgreSQL, "Pattern Matching").

/// A pattern, taken apart once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    steps: Box<[Step]>,
    fold: Fold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// This byte.
    Byte(u8),
    /// One character.
    One,
    /// Any characters, or none.
    Many,
}

/// What becomes of letter case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    /// It counts.
    None,
    /// The letters of ASCII are folded, and no others.
    Ascii,
    /// All letters are folded by the rules of a language, and the pattern holds none beyond ASCII.
    Language,
}

impl Pattern {
    /// Takes `%`, `_` and the backslash for what they are in LIKE.
    pub(super) fn like(pattern: &str, fold: Fold) -> Self {
        let mut steps = Vec::with_capacity(pattern.len());
        let mut bytes = pattern.bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'%' => steps.push(Step::Many),
                b'_' => steps.push(Step::One),
                b'\\' => steps.extend(bytes.next().map(|byte| fold.step(byte))),
                _ => steps.push(fold.step(byte)),
            }
        }
        Self {
            steps: steps.into(),
            fold,
        }
    }

    /// Looks for a text at the start, at the end, or anywhere.
    pub(super) fn part(text: &str, open_start: bool, open_end: bool) -> Self {
        let many = |open: bool| open.then_some(Step::Many).into_iter();
        let steps = many(open_start)
            .chain(text.bytes().map(Step::Byte))
            .chain(many(open_end));
        Self {
            steps: steps.collect(),
            fold: Fold::None,
        }
    }

    /// Whether the text as a whole is of the pattern; `None` where the rules of the language would
    /// have to be known.
    pub(super) fn matches(&self, text: &[u8]) -> Option<bool> {
        if self.fold == Fold::Language && folds_to_ascii(text) {
            return None;
        }
        Some(self.is_matched(text))
    }

    /// Goes back to the last `%` on a mismatch, and lets it take one character more: an earlier one
    /// never needs to.
    fn is_matched(&self, text: &[u8]) -> bool {
        let (mut step, mut at) = (0, 0);
        let mut back: Option<(usize, usize)> = None;
        loop {
            let next = match self.steps.get(step) {
                Some(Step::Many) => {
                    back = Some((step + 1, at));
                    step += 1;
                    continue;
                }
                Some(Step::Byte(byte)) => text
                    .get(at)
                    .filter(|found| self.fold.fold(**found) == *byte)
                    .map(|_| at + 1),
                Some(Step::One) => after_character(text, at),
                None if at == text.len() => return true,
                None => None,
            };
            if let Some(next) = next {
                (step, at) = (step + 1, next);
                continue;
            }
            let Some((behind, from)) = back else {
                return false;
            };
            let Some(from) = after_character(text, from) else {
                return false;
            };
            back = Some((behind, from));
            (step, at) = (behind, from);
        }
    }
}

impl Fold {
    fn fold(self, byte: u8) -> u8 {
        match self {
            Self::None => byte,
            Self::Ascii | Self::Language => byte.to_ascii_lowercase(),
        }
    }

    fn step(self, byte: u8) -> Step {
        Step::Byte(self.fold(byte))
    }
}

/// The place behind the character that begins here.
fn after_character(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
    let inner = rest[1..].iter().take_while(|byte| **byte & 0xC0 == 0x80);
    Some(at + 1 + inner.count())
}

/// Whether the text holds one of the two letters beyond ASCII whose lower case is, or begins with,
/// one of ASCII: `İ` (U+0130) and the Kelvin sign (U+212A).
fn folds_to_ascii(text: &[u8]) -> bool {
    !text.is_ascii()
        && ["\u{130}", "\u{212a}"]
            .iter()
            .any(|letter| memchr::memmem::find(text, letter.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::{Fold, Pattern};

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
            ("%b%", "abc", true),
            ("a%b%c", "axbxbxc", true),
            ("%ab", "aab", true),
            ("%_b", "b", false),
            ("\\%", "%", true),
            ("\\%", "a", false),
            ("\\a", "a", true),
            ("a\\_b", "axb", false),
            ("\\\\", "\\", true),
            ("é%", "éa", true),
            ("A", "a", false),
        ] {
            let found = Pattern::like(pattern, Fold::None).matches(text.as_bytes());
            assert_eq!(found, Some(expected), "{text} like {pattern}");
        }
    }

    #[test]
    fn a_pattern_of_many_percents_takes_no_time() {
        let pattern = Pattern::like(&"%a".repeat(500), Fold::None);
        assert_eq!(pattern.matches("a".repeat(499).as_bytes()), Some(false));
        let pattern = Pattern::like(&format!("{}b", "%a".repeat(50)), Fold::None);
        assert_eq!(pattern.matches("a".repeat(100_000).as_bytes()), Some(false));
    }

    #[test]
    fn letters_that_fold_into_ascii_are_not_guessed() {
        let pattern = Pattern::like("K%", Fold::Language);
        assert_eq!(pattern.matches(b"kelvin"), Some(true));
        assert_eq!(pattern.matches("éé".as_bytes()), Some(false));
        assert_eq!(pattern.matches("\u{212a}elvin".as_bytes()), None);
        assert_eq!(
            Pattern::like("K", Fold::Ascii).matches("\u{212a}".as_bytes()),
            Some(false)
        );
    }
}
