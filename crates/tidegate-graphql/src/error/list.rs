//! A list of the errors of a request, of bounded length.

use super::Error;

/// The largest number of errors in a response. A document of a few kilobytes can have thousands of
/// errors, each of which takes about a hundred bytes.
const MAX_ERRORS: usize = 50;

/// The first errors of a request.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    kept: Vec<Error>,
    more: bool,
}

impl Errors {
    /// Adds an error, unless it is a duplicate or the list is full.
    pub(crate) fn push(&mut self, error: Error) {
        if self.kept.len() == MAX_ERRORS {
            self.more = true;
        } else if !self.kept.contains(&error) {
            self.kept.push(error);
        }
    }

    /// Whether an error was left out because the list is full. If so, further checks are pointless.
    pub(crate) fn is_full(&self) -> bool {
        self.more
    }

    /// Converts the list into a result. If errors were left out, an error that reports this is
    /// appended.
    ///
    /// # Errors
    ///
    /// The collected errors, if there are any.
    pub(crate) fn into_result(self) -> Result<(), Vec<Error>> {
        let mut errors = self.kept;
        let Some(last) = errors.last().filter(|_| self.more) else {
            return if errors.is_empty() {
                Ok(())
            } else {
                Err(errors)
            };
        };
        let message =
            format!("There are more errors than these {MAX_ERRORS}; the rest is left out");
        let more = Error::new(last.code, message);
        errors.push(more);
        Err(errors)
    }
}

impl FromIterator<Error> for Errors {
    /// Collects errors until the list is full.
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
