//! The parent rows of a level.

use tidegate_catalog::Schema;
use tidegate_sql::statement::SqlWriter;

use super::raw_keys::as_text;
use crate::row::{Child, Expression, Keys, Program};

/// The parent rows of a level.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parents<'p> {
    /// There are no parent rows, because the list is the value of a root field.
    None,
    /// An earlier statement returned the parent rows, and their keys are known.
    Known(&'p Keys, &'p Child),
    /// The parent rows are read by another level of the same statement.
    Level(ParentLevel<'p>),
}

/// A parent level that the same statement reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParentLevel<'p> {
    /// The number of the parent level in the statement.
    pub(crate) level: usize,
    pub(crate) program: &'p Program,
    /// The index of the child level among the children of the parent.
    pub(crate) child: usize,
    /// The number of columns that assign the parent rows to lists. They precede the columns that
    /// the program of the parent level reads.
    pub(crate) header: usize,
    /// Whether several rows of the parent may have the same key.
    pub(crate) repeated: bool,
}

impl ParentLevel<'_> {
    /// The key columns of the parent's program.
    pub(super) fn key(&self) -> &[Expression] {
        let child = self.program.children.get(self.child);
        let key = child.and_then(|child| self.program.expressions.get(child.key.clone()));
        key.unwrap_or_default()
    }

    fn shown_keys(&self, sql: &mut SqlWriter) {
        for at in 0..self.key().len() {
            sql.syntax(if at > 0 { ", " } else { "" });
            self.shown_key(at, sql);
        }
    }

    pub(super) fn shown_key(&self, at: usize, sql: &mut SqlWriter) {
        let first = self.program.children[self.child].key.start;
        sql.numbered("p.c", self.header + first + at);
    }

    /// Appends the key column with the index `at` without a cast to `text`, so that PostgreSQL
    /// compares values of the column's type.
    pub(super) fn raw_key(&self, schema: &Schema, at: usize, sql: &mut SqlWriter) {
        let is_raw = |key: &&Expression| as_text(schema, self.program, key).is_some();
        if self.key().get(at).is_none_or(|key| !is_raw(&key)) {
            self.shown_key(at, sql);
            return;
        }
        let before = self.program.children[..self.child].iter();
        let before = before.flat_map(|child| &self.program.expressions[child.key.clone()]);
        let raw = before.chain(&self.key()[..at]).filter(is_raw);
        sql.numbered("p.k", raw.count());
    }

    /// Appends the parent rows, with each key once.
    pub(super) fn rows(&self, schema: &Schema, sql: &mut SqlWriter) {
        if !self.repeated {
            sql.numbered("l", self.level).syntax(" p");
            return;
        }
        sql.syntax("(select distinct ");
        self.shown_keys(sql);
        for (at, key) in self.key().iter().enumerate() {
            if as_text(schema, self.program, key).is_some() {
                sql.syntax(", ");
                self.raw_key(schema, at, sql);
            }
        }
        sql.numbered(" from l", self.level).syntax(" p) p");
    }
}
