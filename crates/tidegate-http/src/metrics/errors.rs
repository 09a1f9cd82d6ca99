//! Counts of errors by code.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::text_format::begin_family;
use crate::report::{Errors, Protocol};

/// How often each error was reported, by protocol and code. The codes are constants in the program,
/// so the number of labels is bounded.
#[derive(Debug, Default)]
pub(super) struct ErrorCounts(Mutex<BTreeMap<(Protocol, &'static str), u64>>);

impl ErrorCounts {
    pub(super) fn count(&self, errors: &Errors) {
        let mut counts = self.lock();
        for (code, more) in &errors.counts {
            *counts.entry((errors.protocol, code)).or_default() += more;
        }
    }

    pub(super) fn write(&self, text: &mut String) -> fmt::Result {
        const NAME: &str = "tidegate_errors_total";
        let help = "Errors in responses, by protocol and error code; a response can have several.";
        begin_family(text, NAME, "counter", help)?;
        for ((protocol, code), count) in &*self.lock() {
            let protocol = protocol.name();
            writeln!(
                text,
                "{NAME}{{protocol=\"{protocol}\",code=\"{code}\"}} {count}"
            )?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Protocol, &'static str), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
