//! The errors of one request, as far as a client is told of them.

use super::Error;

/// A request has no more errors than this in its response: a document of some kilobytes can have
/// thousands, each of which takes a hundred bytes.
const MOST: usize = 50;

/// The first errors of a request.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    kept: Vec<Error>,
    more: bool,
}

impl Errors {
    /// Adds an error, unless it is known or there are enough.
    pub(crate) fn push(&mut self, error: Error) {
        if self.kept.len() == MOST {
            self.more = true;
        } else if !self.kept.contains(&error) {
            self.kept.push(error);
        }
    }

    /// Whether another error would be left out: what would find it need not be done.
    pub(crate) fn is_full(&self) -> bool {
        self.more
    }

    /// # Errors
    ///
    /// The errors that there are; the last one says so where there are more.
    pub(crate) fn into_result(self) -> Result<(), Vec<Error>> {
        let mut errors = self.kept;
        let Some(last) = errors.last().filter(|_| self.more) else {
            return if errors.is_empty() {
                Ok(())
            } else {
                Err(errors)
            };
        };
        let message = format!("There are more errors than these {MOST}; the rest is left out");
        let more = Error::new(last.code, message);
        errors.push(more);
        Err(errors)
    }
}

impl FromIterator<Error> for Errors {
    /// Takes errors until there are enough.
    fn from_iter<T: IntoIterator<Item = Error>>(errors: T) -> Self {
        let mut kept = Self::default();
        for error in errors {
            kept.push(error);
            if kept.is_full() {
                break;
            }
        }
        kept
    }
}
