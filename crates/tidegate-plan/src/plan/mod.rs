//! An operation on its way through its statements.

mod build;
mod flat;
mod harmless;
mod level;
mod measure;
mod merge;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tidegate_catalog::Schema;
use tidegate_sql::{BoundStatement, InputError, RowSink};

pub(crate) use self::level::Source;
use self::level::{Level, Settings};
use crate::{Error, Limits, Operation, Outcome, Place, Result};

/// The SQLSTATE of a row that its view would not show.
const WITH_CHECK_OPTION: &str = "44000";

/// An operation on its way: statements come out, rows go in, the response's data comes out.
///
/// ```text
/// let mut plan = Plan::new(&schema, operation, &limits)?;
/// match plan.way() { Alone => no transaction, Snapshot | ReadWrite => begin }
/// while let Some(step) = plan.next()? {
///     let ran = transaction.query(step.statement, step.sink).await;
///     ran.map_err(|error| plan.locate(error))?;               // plan.key() names the field
/// }
/// commit; let outcome = plan.finish(&mut out)?;
/// ```
#[derive(Debug)]
pub struct Plan<'a> {
    settings: Settings<'a>,
    way: Way,
    writes: bool,
    roots: Vec<Root>,
    levels: Vec<Level<'a>>,
    /// The level whose statement comes next or is running.
    at: usize,
    /// How many levels have not given all their statements yet.
    left: usize,
    /// The statement that was given last.
    statement: Option<BoundStatement>,
}

/// A root field.
#[derive(Debug)]
struct Root {
    key: Arc<str>,
    shows: RootShows,
}

/// What a root field shows.
#[derive(Debug)]
enum RootShows {
    /// The rows of a level.
    Level(usize),
    /// Ready text.
    Verbatim(Bytes),
    /// What the caller puts there.
    Gap,
}

/// A statement to run, and who takes its rows.
#[expect(missing_debug_implementations, reason = "a sink cannot be shown")]
pub struct Step<'p> {
    /// The statement.
    pub statement: &'p BoundStatement,
    /// Who takes its rows.
    pub sink: &'p mut dyn RowSink,
}

/// In what the statements of a plan are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// At most one statement: `Executor::query`, no explicit transaction.
    Alone,
    /// `Mode::Snapshot`: a query of several statements, or of one that could write.
    Snapshot,
    /// `Mode::ReadWrite`.
    ReadWrite,
}

impl<'a> Plan<'a> {
    /// Plans an operation whose identifiers are those of `schema`.
    ///
    /// # Errors
    ///
    /// [`Error::Root`] names the root field: [`Error::Input`] in it for objects that are none and
    /// for names that are no columns, with their place; [`Error::Unbounded`] for an update or a
    /// delete of every row.
    pub fn new(schema: &'a Schema, operation: Operation<'a>, limits: &Limits) -> Result<Self> {
        let settings = Settings {
            schema,
            limits: *limits,
        };
        build::plan(settings, operation, true)
    }

    /// Plans an operation so that each field has statements of its own, and an error is that of
    /// one field.
    ///
    /// # Errors
    ///
    /// As [`Plan::new`].
    pub fn apart(schema: &'a Schema, operation: Operation<'a>, limits: &Limits) -> Result<Self> {
        let settings = Settings {
            schema,
            limits: *limits,
        };
        build::plan(settings, operation, false)
    }

    /// In what the statements are to be run.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Begins with the statements of this root field, by its number, and goes round: the answer
    /// keeps its order. Of a query only, before its first statement.
    pub fn begin_with(&mut self, root: usize) {
        let first = self.levels.iter().position(|level| level.root >= root);
        self.at = first.unwrap_or(0);
    }

    /// The fields whose statements have not all been run to their end; those below another one
    /// stand behind it.
    pub fn unfinished(&self) -> Vec<Place> {
        let levels = (0..self.levels.len()).cycle().skip(self.at).take(self.left);
        levels.map(|level| self.place_of(level)).collect()
    }

    /// Shows null at a field, whatever its statements gave or did not.
    pub fn lose(&mut self, place: &Place) {
        if place.below.is_empty() {
            if let Some(root) = self.roots.get_mut(place.root) {
                root.shows = RootShows::Verbatim(Bytes::from_static(b"null"));
            }
            return;
        }
        let mut levels = 0..self.levels.len();
        if let Some(level) = levels.find(|level| self.place_of(*level) == *place) {
            self.levels[level].source = Source::Lost;
        }
    }

    /// Whether the statement that was given last reads the rows of several fields, so that
    /// nothing tells which of them is to blame for its error.
    pub fn is_joined(&self) -> bool {
        self.levels.get(self.at).is_some_and(|level| {
            matches!(level.source, Source::Flat(..)) || !level.rows.program.joins.is_empty()
        })
    }

    /// The field whose statement was given last.
    pub fn place(&self) -> Option<Place> {
        (self.at < self.levels.len()).then(|| self.place_of(self.at))
    }

    fn place_of(&self, level: usize) -> Place {
        let mut below = Vec::new();
        let mut at = level;
        while let Some((above, child)) = self.levels[at].above {
            let child = &self.levels[above].rows.program.children[child];
            below.push(Arc::clone(&child.key));
            below.extend(child.around.iter().rev().cloned());
            at = above;
        }
        below.reverse();
        let root = self.levels[level].root;
        Place { root, below }
    }

    /// The next statement, once the one before it has been run to its end; `None` when there is
    /// none left.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] for a value that does not fit its column, with its place.
    #[expect(clippy::should_implement_trait, reason = "its items borrow the plan")]
    pub fn next(&mut self) -> Result<Option<Step<'_>>> {
        self.statement = None;
        while self.statement.is_none() && self.left > 0 {
            let (before, rest) = self.levels.split_at_mut(self.at);
            let Some(level) = rest.first_mut() else {
                self.at = 0;
                continue;
            };
            self.statement = level.next(&self.settings, before)?;
            if self.statement.is_none() {
                self.at += 1;
                self.left -= 1;
            }
        }
        let level = self.levels.get_mut(self.at);
        match (&self.statement, level) {
            (Some(statement), Some(level)) => Ok(Some(Step {
                statement,
                sink: &mut level.rows,
            })),
            _ => Ok(None),
        }
    }

    /// The response key of the root field whose statement was given last: the path of its error.
    pub fn key(&self) -> Option<&Arc<str>> {
        let level = self.levels.get(self.at)?;
        self.roots.get(level.root).map(|root| &root.key)
    }

    /// Says where the value stands that PostgreSQL refused in the statement that was given last.
    /// Of an insert of many objects PostgreSQL sees one array a column, and tells the column alone;
    /// of a value beyond the length or precision of its column it tells the limit alone. Of a row
    /// that a view does not let in (WITH CHECK OPTION) it names no relation, so the one that was
    /// written is named. Any other error is given back as it is.
    pub fn locate(&self, error: tidegate_sql::Error) -> tidegate_sql::Error {
        match (error, self.levels.get(self.at)) {
            (tidegate_sql::Error::Rejected(mut rejection), Some(level)) => {
                if let Some(place) = level.locate(&self.settings, &rejection) {
                    rejection.place = Some(place);
                }
                if rejection.sqlstate == WITH_CHECK_OPTION && rejection.table.is_none() {
                    let relation = self.settings.schema.relation(level.relation);
                    rejection.table = Some(relation.name.to_string());
                }
                tidegate_sql::Error::Rejected(rejection)
            }
            (error, _) => error,
        }
    }

    /// About how many bytes [`Plan::finish`] will append, once all statements have been run.
    pub fn size(&self) -> u64 {
        measure::size(&self.roots, &self.levels)
    }

    /// Appends the whole data object, `{"getArtists":[…]}`, once all statements have been run, but
    /// those of fields that are lost.
    ///
    /// A write without a transaction is committed once its rows, which are within the limit, have
    /// been taken. What stands around them is given whatever its size: it is too late for an error.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`].
    pub fn finish(self, out: &mut BytesMut) -> Result<Outcome> {
        let mut limits = self.settings.limits;
        if self.writes && self.way == Way::Alone {
            limits.bytes = u64::MAX;
        }
        merge::data(&self.roots, &self.levels, &limits, out)
    }
}

impl From<Error> for tidegate_sql::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Input(input) => Self::Input(input),
            Error::Root(_, error) => Self::from(*error),
            Error::TooLarge(limit) => Self::ResultTooLarge(limit),
            Error::Internal(problem) => Self::internal(problem),
            unbounded @ Error::Unbounded(_) => Self::Input(InputError::InvalidMember {
                member: "where".to_owned(),
                problem: unbounded.to_string(),
            }),
        }
    }
}
