//! A cache of parsed statements. It saves time, because client programs send the same few
//! statements repeatedly.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tidegate_sql::{InputError, Statement};

/// The length in bytes of the longest statement that is cached.
const LONGEST: usize = 4 * 1024;
/// The maximum total length in bytes of the SQL text in the cache. The parsed statements take about
/// as much memory again.
const CAPACITY: u64 = 512 * 1024;
/// The expected number of cached statements. The initial size of the cache is computed from it.
const USUAL_NUMBER: usize = 2_048;

/// Parsed statements by their text. All tenants share them, because parsing depends on the text
/// only.
#[derive(Debug)]
pub(crate) struct StatementCache(Cache<String, Arc<Statement>, TextLength>);

#[derive(Clone, Debug)]
struct TextLength;

impl Weighter<String, Arc<Statement>> for TextLength {
    fn weight(&self, text: &String, _: &Arc<Statement>) -> u64 {
        text.len() as u64
    }
}

impl Default for StatementCache {
    fn default() -> Self {
        Self(Cache::with_weighter(USUAL_NUMBER, CAPACITY, TextLength))
    }
}

impl StatementCache {
    /// Returns the parsed statement for this text, from the cache if possible.
    ///
    /// # Errors
    ///
    /// As [`Statement::parse`]; errors are not cached.
    pub(crate) fn read(&self, q: &str) -> Result<Arc<Statement>, InputError> {
        let parse = || Statement::parse(q).map(Arc::new);
        if q.len() > LONGEST {
            return parse();
        }
        self.0.get_or_insert_with(q, parse)
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
            assert!(statements.0.weight() <= CAPACITY);
        }
        let cached = statements.0.weight();
        let long = format!("select '{}'", "x".repeat(LONGEST));
        statements.read(&long).unwrap();
        assert_eq!(cached, statements.0.weight());
    }

    #[test]
    fn what_cannot_be_read_is_an_error_each_time() {
        let statements = StatementCache::default();
        assert!(statements.read("select 'a").is_err());
        assert!(statements.read("select 'a").is_err());
    }
}
