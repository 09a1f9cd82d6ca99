//! Letter case under a collation, as far as a pattern of ASCII letters needs it.

/// The letter `İ`.
const DOTTED: &str = "\u{130}";
/// The sign of the unit kelvin.
const KELVIN: &str = "\u{212a}";

/// How a collation folds the letters that a pattern of ASCII letters can meet: those of ASCII, and
/// the two beyond it whose lower case is, or begins with, one of ASCII.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letters {
    dotted: Box<str>,
    kelvin: Box<str>,
}

impl Letters {
    /// What PostgreSQL is asked for the lower case of.
    pub const SAMPLE: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ\nI\u{300}J\u{300}\n\u{130}\n\u{212a}";
    /// The same for an encoding that has no more letters.
    pub const ASCII: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    /// Reads the lower case of one of the samples; `None` where letters of ASCII do not become the
    /// small letters of ASCII, each by itself, as in Turkish and in Lithuanian.
    pub fn of(lower: &str) -> Option<Self> {
        let mut lines = lower.split('\n');
        let ascii = lines.next()?;
        let accented = lines.next().unwrap_or("i\u{300}j\u{300}");
        let usual = ascii == Self::ASCII.to_ascii_lowercase() && accented == "i\u{300}j\u{300}";
        usual.then(|| Self {
            dotted: lines.next().unwrap_or(DOTTED).into(),
            kelvin: lines.next().unwrap_or(KELVIN).into(),
        })
    }

    /// The text with its letters folded.
    pub(super) fn fold(&self, text: &[u8]) -> Vec<u8> {
        let folded = text.to_ascii_lowercase();
        match String::from_utf8(folded) {
            Ok(folded) => folded
                .replace(DOTTED, &self.dotted)
                .replace(KELVIN, &self.kelvin)
                .into_bytes(),
            Err(other) => other.into_bytes(),
        }
    }
}
