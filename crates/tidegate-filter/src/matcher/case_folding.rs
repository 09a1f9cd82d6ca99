//! Case folding under a collation, limited to the letters that a pattern with only ASCII letters
//! can match.

/// The letter `İ`.
const DOTTED: &str = "\u{130}";
/// The Kelvin sign.
const KELVIN: &str = "\u{212a}";

/// How a collation folds the letters that can match an ASCII letter. These are the ASCII letters
/// and two other characters, whose lower case is or begins with an ASCII letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFolding {
    /// The lower case of `İ`.
    dotted: Box<str>,
    /// The lower case of the Kelvin sign.
    kelvin: Box<str>,
}

impl CaseFolding {
    /// The sample text. PostgreSQL converts it to lower case under the collation, and
    /// [`CaseFolding::of`] reads the result.
    pub const SAMPLE: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ\nI\u{300}J\u{300}\n\u{130}\n\u{212a}";
    /// The sample for databases whose encoding lacks the characters beyond ASCII.
    pub const ASCII: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    /// Reads the case folding from the lower case of one of the samples. `None` if the lower case
    /// of an ASCII letter is not the usual ASCII letter, as in Turkish and Lithuanian.
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

    /// The text in lower case under the collation.
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
