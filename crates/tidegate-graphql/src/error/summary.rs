//! A summary of the errors in a response, for the log and the metrics.

use tidegate_sql::DatabaseError;

use super::{Code, Error};

/// The number of errors with each code, and the first error.
#[derive(Clone, Debug, Default)]
pub struct ErrorSummary {
    first: Option<Box<Error>>,
    counts: [u64; Code::ALL.len()],
}

impl ErrorSummary {
    /// The summary of one response.
    pub fn of(errors: &[Error]) -> Self {
        let mut summary = Self {
            first: errors.first().cloned().map(Box::new),
            ..Self::default()
        };
        for error in errors {
            summary.counts[error.code as usize] += 1;
        }
        summary
    }

    /// Adds the errors of another response. The responses to an array of requests have one summary.
    pub fn add(&mut self, other: Self) {
        if self.first.is_none() {
            self.first = other.first;
        }
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }

    /// The number of errors with each code that occurs. The code of the first error comes first.
    pub fn counts(&self) -> impl Iterator<Item = (Code, u64)> {
        let first = self.first.as_ref().map(|error| error.code);
        let others = Code::ALL
            .into_iter()
            .filter(move |code| Some(*code) != first);
        let all = first.into_iter().chain(others);
        all.map(|code| (code, self.counts[code as usize]))
            .filter(|(_, count)| *count > 0)
    }

    /// PostgreSQL's error, if it caused the first error.
    pub fn rejection(&self) -> Option<&DatabaseError> {
        self.first.as_ref()?.rejection.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_own_place() {
        for (index, code) in Code::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, index, "{}", code.as_str());
        }
    }

    #[test]
    fn errors_are_counted_by_code_with_the_first_one_ahead() {
        let error = |code| Error::new(code, "");
        let mut summary = ErrorSummary::of(&[error(Code::Timeout), error(Code::ParseFailed)]);
        summary.add(ErrorSummary::of(&[error(Code::Timeout)]));
        let counts: Vec<_> = summary.counts().collect();
        assert_eq!(counts, [(Code::Timeout, 2), (Code::ParseFailed, 1)]);
        assert_eq!(ErrorSummary::default().counts().count(), 0);
    }
}
