//! A tree: a root field with all levels below it, and the statements that run for it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tidegate_sql::{BoundStatement, DatabaseError, Flow, PipelineStep, RowSink};
use tidegate_values::Values;
use tidegate_values::{Column, RawRow};

use super::level::{Level, RowSource, Settings, narrow};
use super::reading::{self, Reading};
use crate::row::wrong_column_count;
use crate::statement;
use crate::{Error, Result};

/// The levels of a root field, each after its parent. Several root fields that read one row each
/// can share a tree and its statement.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub(crate) reader: TreeSink<'a>,
    /// If true, each list is read with a limit of its own, and keys are not assumed to be unique.
    careful: bool,
    /// The statement that is running, or that runs next; `None` if there is none.
    statement: Option<BoundStatement>,
    /// Whether the statement comes from a template. Such a tree has no other statement.
    pub(crate) is_bound: bool,
}

/// Receives the rows of the current statement and passes each to its level.
#[derive(Debug)]
pub(crate) struct TreeSink<'a> {
    pub(crate) levels: Vec<Level<'a>>,
    task: Task,
}

/// The kind of the current statement of a tree.
#[derive(Debug)]
enum Task {
    /// The statement inserts, updates or deletes. The number is the index of the group of objects
    /// that an insert writes, and 0 for updates and deletes.
    Write(usize),
    /// The statement reads aggregates or levels.
    Read(Reading),
    /// There is no current statement: none has begun, or all have run.
    Done,
}

impl<'a> Tree<'a> {
    pub(super) fn new(levels: Vec<Level<'a>>) -> Self {
        Self {
            reader: TreeSink {
                levels,
                task: Task::Done,
            },
            careful: false,
            statement: None,
            is_bound: false,
        }
    }

    /// A tree for a statement that a template provides. Its levels are ready to take the rows.
    pub(super) fn bound(
        levels: Vec<Level<'a>>,
        statement: BoundStatement,
        reading: Reading,
    ) -> Self {
        let task = Task::Read(reading);
        Self {
            reader: TreeSink { levels, task },
            careful: false,
            statement: Some(statement),
            is_bound: true,
        }
    }

    /// The statement that reads all levels, and its [`Reading`], for a template. `None` if there is
    /// no such statement, or if it was repeated with a limit for each list.
    pub(super) fn reading(&self) -> Option<(&BoundStatement, &Reading)> {
        match (&self.statement, &self.reader.task) {
            (Some(statement), Task::Read(reading)) if !self.careful => Some((statement, reading)),
            _ => None,
        }
    }

    /// Whether at most one statement runs. A write with child levels has a second statement, which
    /// reads the rows of these levels. An insert has a statement for each group of objects.
    pub(super) fn is_one_statement(&self) -> bool {
        let groups = match self.reader.levels.first().map(|level| &level.source) {
            Some(RowSource::Insert(_, groups)) => groups.len(),
            _ => 1,
        };
        groups <= 1 && (self.reader.levels.len() == 1 || !self.writes())
    }

    /// From now on, a row that the response cannot contain does not fail the statement. Instead,
    /// its level stores the error, and leaves out this row and all later rows. Used for writes that
    /// are committed before the rows arrive.
    pub(super) fn drop_refused_rows(&mut self) {
        for level in &mut self.reader.levels {
            level.rows.drop_refused_rows();
        }
    }

    /// Makes the levels add the bytes of their rows to `bytes`, which counts the bytes of all trees
    /// of the plan.
    pub(super) fn share_limit(&mut self, bytes: &Arc<AtomicU64>) {
        for level in &mut self.reader.levels {
            level.rows.share_limit(bytes);
        }
    }

    /// Takes the error that made a level leave out rows. Returns `None` if no rows were left out.
    pub(super) fn dropped(&mut self) -> Option<tidegate_sql::Error> {
        let mut levels = self.reader.levels.iter_mut();
        levels.find_map(|level| level.rows.dropped.take())
    }

    pub(super) fn writes(&self) -> bool {
        self.reader.levels.first().is_some_and(Level::writes)
    }

    /// Builds the first statement; returns false if there is none.
    pub(super) fn begin(&mut self, settings: &Settings<'a>) -> Result<bool> {
        if self.is_bound {
            let again = Error::Internal("a plan of a template was to be sent again");
            return self.statement.as_ref().map(|_| true).ok_or(again);
        }
        if self.writes() {
            return self.write(settings, 0);
        }
        self.read(settings, 0..self.reader.levels.len())?;
        Ok(true)
    }

    /// Builds the next statement after the previous statement has run; returns false if there is
    /// none. After a write, one statement reads all child levels.
    pub(super) fn next(&mut self, settings: &Settings<'a>) -> Result<bool> {
        match &self.reader.task {
            Task::Write(group) => {
                let next = group + 1;
                if self.write(settings, next)? {
                    return Ok(true);
                }
                if self.has_keys_below() {
                    self.read(settings, 1..self.reader.levels.len())?;
                    return Ok(true);
                }
            }
            Task::Read(reading) => {
                let levels = reading.levels.clone();
                if self.is_incomplete(settings) {
                    self.careful = true;
                    self.read(settings, levels)?;
                    return Ok(true);
                }
                self.link();
            }
            Task::Done => {}
        }
        self.reader.task = Task::Done;
        self.statement = None;
        Ok(false)
    }

    /// Whether any written row has a key by which related rows can be found.
    fn has_keys_below(&self) -> bool {
        let written = self.reader.levels.first();
        let mut keys = written
            .into_iter()
            .flat_map(|level| &level.rows.written.children);
        keys.any(|keys| keys.count() > 0)
    }

    fn write(&mut self, settings: &Settings<'a>, number: usize) -> Result<bool> {
        let Some(level) = self.reader.levels.first_mut() else {
            return Ok(false);
        };
        if matches!(&level.source, RowSource::Insert(_, groups) if groups.len() == number) {
            level.arrange();
            return Ok(false);
        }
        let (schema, program) = (settings.schema, &level.rows.program);
        let statement = match &level.source {
            RowSource::Insert(wanted, groups) => {
                let group = groups
                    .get(number)
                    .ok_or(Error::Internal("too many groups"))?;
                statement::insert(schema, level.relation, wanted, group, program)?
            }
            RowSource::Update(wanted) if number == 0 => {
                statement::update(schema, level.relation, wanted, program)
            }
            RowSource::Delete(wanted) if number == 0 => {
                statement::delete(schema, level.relation, wanted, program)
            }
            _ => return Ok(false),
        };
        self.statement = Some(statement);
        self.reader.task = Task::Write(number);
        Ok(true)
    }

    fn read(&mut self, settings: &Settings<'a>, levels: Range<usize>) -> Result<()> {
        let first = levels.start;
        let level = self.reader.levels.get_mut(first);
        let level = level.ok_or(Error::Internal("a root field without rows"))?;
        let (statement, reading) = if let RowSource::Aggregate(wanted) = &level.source {
            level.rows.most = narrow(settings.limits.most_rows);
            let fetched = settings.limits.most_rows.saturating_add(1);
            let (relation, program) = (level.relation, &level.rows.program);
            let schema = settings.schema;
            let statement = statement::aggregate(schema, relation, wanted, program, fetched);
            (statement, Reading::plain(levels))
        } else {
            reading::statement(settings, &mut self.reader.levels, levels, self.careful)
        };
        self.statement = Some(statement);
        self.reader.task = Task::Read(reading);
        Ok(())
    }

    /// Whether the result of the current statement, which has run, may be wrong. If so, the
    /// statement must be repeated with a limit for each list.
    pub(super) fn is_incomplete(&self, settings: &Settings<'_>) -> bool {
        matches!(&self.reader.task, Task::Read(reading)
            if reading.is_incomplete(settings.schema, &self.reader.levels))
    }

    /// Prepares the tree to run its statements again. If the result was incomplete, each list gets
    /// a limit of its own.
    pub(super) fn restart(&mut self, settings: &Settings<'_>) {
        self.careful |= self.is_incomplete(settings);
        self.statement = None;
        self.reader.task = Task::Done;
    }

    /// Assigns the lists of each level to the rows of its parent level. Further calls have no
    /// effect.
    pub(super) fn link(&mut self) {
        let Task::Read(reading) = &self.reader.task else {
            return;
        };
        for at in reading.levels.clone().skip(1) {
            let (before, rest) = self.reader.levels.split_at_mut(at);
            if let [level, ..] = rest
                && let Some(keys) = reading::keys_above(before, level.above)
            {
                level.rows.link(keys);
            }
        }
    }

    /// The current statement and its sink.
    pub(super) fn step(&mut self) -> Option<PipelineStep<'_>> {
        let statement = self.statement.as_ref()?;
        let sink = &mut self.reader;
        Some(PipelineStep { statement, sink })
    }

    /// The path of the value that PostgreSQL rejected in the current statement; `None` if it cannot
    /// be determined.
    pub(super) fn locate(
        &self,
        settings: &Settings<'_>,
        rejection: &DatabaseError,
    ) -> Option<String> {
        match &self.reader.task {
            Task::Write(group) => self
                .reader
                .levels
                .first()?
                .locate(settings, *group, rejection),
            Task::Read(reading) => {
                let levels = self.reader.levels[reading.levels.clone()].iter();
                let mut places = levels.filter_map(|level| level.locate(settings, 0, rejection));
                let place = places.next();
                place.filter(|_| places.next().is_none())
            }
            Task::Done => None,
        }
    }
}

impl RowSink for TreeSink<'_> {
    fn columns(&mut self, columns: &[Column]) -> tidegate_sql::Result<()> {
        match &self.task {
            Task::Read(reading) => {
                for (number, level) in self.levels[reading.levels.clone()].iter_mut().enumerate() {
                    let positions = reading.positions(number);
                    let column = |at: usize| match positions {
                        Some(positions) => columns.get(*positions.get(at)?),
                        None => columns.get(at),
                    };
                    level.rows.columns(column)?;
                }
                Ok(())
            }
            // A rewrite rule may replace the write by a command of another kind. PostgreSQL then
            // describes no columns and returns no rows.
            Task::Write(_) | Task::Done if columns.is_empty() => Ok(()),
            Task::Write(_) | Task::Done => match self.levels.first_mut() {
                Some(level) => level.rows.columns(|at| columns.get(at)),
                None => Ok(()),
            },
        }
    }

    fn row(&mut self, row: RawRow<'_>) -> tidegate_sql::Result<Flow> {
        let mut values = row.values();
        let (mut at, mut positions) = (0, None);
        if let Task::Read(reading) = &self.task {
            at = reading.levels.start;
            if reading.has_numbers() {
                let last = reading.levels.len().saturating_sub(1);
                let number = level_number(&mut values, last).ok_or_else(wrong_column_count)?;
                positions = reading.positions(number);
                at += number;
            }
        }
        let level = self.levels.get_mut(at).ok_or_else(wrong_column_count)?;
        match positions {
            Some(positions) => level.rows.push(&mut LevelValues {
                values,
                at: 1,
                positions: positions.iter(),
            })?,
            None => level.rows.push(&mut values)?,
        }
        Ok(Flow::Continue)
    }
}

/// Reads the number of the level, which is the first column of a row: an `int4`, or NULL for the
/// level with the number `last`.
fn level_number(values: &mut Values<'_>, last: usize) -> Option<usize> {
    let Some(number) = values.next()? else {
        return Some(last);
    };
    usize::try_from(i32::from_be_bytes(number.try_into().ok()?)).ok()
}

/// The values of a row that belong to one level, at ascending positions.
struct LevelValues<'v, 'p> {
    values: Values<'v>,
    /// The position of the next value.
    at: usize,
    positions: std::slice::Iter<'p, usize>,
}

impl<'v> Iterator for LevelValues<'v, '_> {
    type Item = Option<&'v [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let position = *self.positions.next()?;
        let skipped = position.checked_sub(self.at)?;
        self.at = position + 1;
        self.values.nth(skipped)
    }
}
