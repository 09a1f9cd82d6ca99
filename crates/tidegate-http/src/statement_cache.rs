//! A cache of parsed statements. Programs send the same few texts repeatedly.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_sql::{InputError, Statement};

/// The longest text that is cached.
const LONGEST: usize = 4 * 1024;
/// How many bytes of text are cached. The parsed statements take about as much again.
const CAPACITY: usize = 512 * 1024;

/// Parsed statements by their text. All tenants share them, because parsing depends on the text
/// only. A full cache is cleared; parsing a statement again takes microseconds.
#[derive(Debug, Default)]
pub(crate) struct StatementCache(Mutex<CacheState>);

#[derive(Debug, Default)]
struct CacheState {
    statements: HashMap<Box<str>, Arc<Statement>>,
    bytes: usize,
}

impl StatementCache {
    /// The statement with this text.
    ///
    /// # Errors
    ///
    /// As [`Statement::parse`]; errors are not cached.
    pub(crate) fn read(&self, q: &str) -> Result<Arc<Statement>, InputError> {
        if q.len() > LONGEST {
            return Statement::parse(q).map(Arc::new);
        }
        if let Some(known) = self.lock().statements.get(q) {
            return Ok(Arc::clone(known));
        }
        let statement = Arc::new(Statement::parse(q)?);
        self.lock().insert(q, &statement);
        Ok(statement)
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheState {
    fn insert(&mut self, q: &str, statement: &Arc<Statement>) {
        if self.bytes + q.len() > CAPACITY {
            *self = Self::default();
        }
        let replaced = self.statements.insert(q.into(), Arc::clone(statement));
        if replaced.is_none() {
            self.bytes += q.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_once() {
        let statements = StatementCache::default();
        let first = statements.read("select :a").unwrap();
        assert!(Arc::ptr_eq(&first, &statements.read("select :a").unwrap()));
        assert_eq!(*first, Statement::parse("select :a").unwrap());
        let other = statements.read("select :b").unwrap();
        assert_eq!(other.placeholders(), ["b"]);
    }

    #[test]
    fn what_is_kept_is_bounded_by_bytes() {
        let statements = StatementCache::default();
        for number in 0..=CAPACITY / 1000 {
            let q = format!("select {number:0>1000}");
            statements.read(&q).unwrap();
            assert!(statements.lock().bytes <= CAPACITY);
        }
        let cached: usize = statements.lock().statements.keys().map(|q| q.len()).sum();
        assert_eq!(cached, statements.lock().bytes);
        assert!(cached < CAPACITY / 2, "it has started over: {cached}");
        let long = format!("select '{}'", "x".repeat(LONGEST));
        statements.read(&long).unwrap();
        assert_eq!(cached, statements.lock().bytes);
    }

    #[test]
    fn what_cannot_be_read_is_an_error_each_time() {
        let statements = StatementCache::default();
        assert!(statements.read("select 'a").is_err());
        assert!(statements.read("select 'a").is_err());
    }
}
