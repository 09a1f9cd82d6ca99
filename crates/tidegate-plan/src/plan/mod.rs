//! The plan of an operation: the statements to run, and how their rows become one response.

mod build;
mod level;
mod merge;
mod read_only;
mod reading;
mod template;
mod tree;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tidegate_catalog::Schema;
use tidegate_sql::{InputError, PipelineStep};

use self::level::Settings;
pub use self::template::Template;
use self::tree::Tree;
use crate::{Error, Limits, Operation, PlanOutcome, Result};

/// The SQLSTATE for a row that violates the check option of its view.
const WITH_CHECK_OPTION: &str = "44000";

/// The plan of an operation. The caller runs the statements of the plan, and the plan collects
/// their rows. Then the caller takes the data of the response from the plan.
///
/// ```text
/// let mut plan = Plan::new(&schema, operation, &limits)?;
/// loop {
///     let steps = plan.steps()?;               // all statements
///     run(steps).await?;                       // in the transaction that `Plan::mode` requires
///     // Rarely true: the results may be wrong, so that all statements must run again.
///     if !plan.restart() { break }
/// }
/// let outcome = plan.finish(&mut out)?;
/// ```
///
/// The statements of a mutation in [`ExecutionMode::InTurn`] come from [`Plan::next`] instead,
/// because a statement may need the rows of an earlier statement.
#[derive(Debug)]
pub struct Plan<'a> {
    settings: Settings<'a>,
    mode: ExecutionMode,
    roots: Vec<Root>,
    trees: Vec<Tree<'a>>,
    /// For each statement that the most recent call of [`Plan::steps`] or [`Plan::next`] returned,
    /// the index of the statement's tree.
    steps: Vec<usize>,
    /// The index of the tree whose statement [`Plan::next`] most recently returned.
    at: usize,
}

#[derive(Clone, Debug)]
struct Root {
    key: Arc<str>,
    output: RootOutput,
}

/// The content of a root field.
#[derive(Clone, Debug)]
enum RootOutput {
    /// The rows of a level. Both fields are indexes: of the tree, and of the level in the tree.
    Rows { tree: usize, level: usize },
    /// JSON text that is known before any statement runs.
    Verbatim(Bytes),
    /// JSON text that the caller inserts at one of [`PlanOutcome::insertion_points`].
    Inserted,
}

/// How the statements of a plan must be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionMode {
    /// There is at most one statement, which cannot write. `Executor::query` runs it.
    Single,
    /// The statements are a pipeline in `Mode::Snapshot`, because there are several statements or
    /// because one of them might write.
    Snapshot,
    /// The statements are a pipeline in `Mode::ReadWrite`. The commit is sent together with the
    /// statements. Each statement writes at most one row.
    Together,
    /// The statements are a pipeline in `Mode::ReadWrite`. The commit is sent once the sinks have
    /// taken all rows.
    AfterRows,
    /// The statements run one after the other in a transaction in `Mode::ReadWrite`. Two kinds of
    /// mutations have this mode:
    ///
    /// - A mutation that returns relationships of written rows. The related rows are read by the
    ///   keys that the write returned.
    /// - A mutation that inserts objects with different columns.
    InTurn,
}

impl<'a> Plan<'a> {
    /// Plans an operation whose identifiers belong to `schema`.
    ///
    /// # Errors
    ///
    /// [`Error::Root`], which contains the root field and one of two causes. The first is
    /// [`Error::Input`], with a path: for a row that is not an object, for a column that is
    /// unknown, computed or given twice, for a value of the wrong kind, and for an update without
    /// columns. The second is [`Error::Unbounded`]: for an update or a delete without a condition.
    pub fn new(schema: &'a Schema, operation: Operation<'a>, limits: &Limits) -> Result<Self> {
        let settings = Settings {
            schema,
            limits: *limits,
        };
        build::plan(settings, operation, true)
    }

    /// Plans like [`Plan::new`], but root fields never share a statement ([`Plan::is_shared`]).
    /// Each failed statement then belongs to exactly one root field.
    ///
    /// # Errors
    ///
    /// As [`Plan::new`].
    pub fn separate(schema: &'a Schema, operation: Operation<'a>, limits: &Limits) -> Result<Self> {
        let settings = Settings {
            schema,
            limits: *limits,
        };
        build::plan(settings, operation, false)
    }

    /// How the statements must be run.
    pub fn mode(&self) -> ExecutionMode {
        self.mode
    }

    /// Returns all statements. Root fields that read one row each may share a statement; every
    /// other root field that needs a statement has a statement of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Root`] with [`Error::Input`], which has the path of a value that does not fit its
    /// column.
    pub fn steps(&mut self) -> Result<Vec<PipelineStep<'_>>> {
        self.steps.clear();
        for (number, tree) in self.trees.iter_mut().enumerate() {
            let begun = tree.begin(&self.settings);
            if begun.map_err(|error| of_tree(&self.roots, number, error))? {
                self.steps.push(number);
            }
        }
        Ok(self.trees.iter_mut().filter_map(Tree::step).collect())
    }

    /// Checks whether the results may be wrong, because lists reached a limit that they share, or
    /// because keys are not unique although the schema declares them unique. If so, prepares all
    /// statements to run again in a new transaction and returns true. Must be called once all
    /// statements have run.
    pub fn restart(&mut self) -> bool {
        let mut trees = self.trees.iter();
        let is_incomplete = trees.any(|tree| tree.is_incomplete(&self.settings));
        if is_incomplete {
            for tree in &mut self.trees {
                tree.restart(&self.settings);
            }
        }
        is_incomplete
    }

    /// Returns the next statement of [`ExecutionMode::InTurn`], or `None` if there are no more. The
    /// previous statement must have ended.
    ///
    /// # Errors
    ///
    /// As [`Plan::steps`].
    #[expect(clippy::should_implement_trait, reason = "its items borrow the plan")]
    pub fn next(&mut self) -> Result<Option<PipelineStep<'_>>> {
        let mut begun = !self.steps.is_empty();
        self.steps.clear();
        while let Some(tree) = self.trees.get_mut(self.at) {
            let next = if begun {
                tree.next(&self.settings)
            } else {
                tree.begin(&self.settings)
            };
            if next.map_err(|error| of_tree(&self.roots, self.at, error))? {
                self.steps.push(self.at);
                break;
            }
            self.at += 1;
            begun = false;
        }
        Ok(self.trees.get_mut(self.at).and_then(Tree::step))
    }

    /// The index of the first root field of a statement. `step` is the index of the statement in
    /// the result of the most recent call of [`Plan::steps`] or [`Plan::next`].
    pub fn root(&self, step: usize) -> Option<usize> {
        let tree = self.steps.get(step)?;
        roots_of(&self.roots, *tree).next()
    }

    /// Whether several root fields share a statement. `step` has the same meaning as for
    /// [`Plan::root`].
    pub fn is_shared(&self, step: usize) -> bool {
        let tree = self.steps.get(step);
        tree.is_some_and(|tree| roots_of(&self.roots, *tree).nth(1).is_some())
    }

    /// The indexes of the root fields whose statements have the index `step` or a higher index.
    pub fn roots_from(&self, step: usize) -> Vec<usize> {
        let trees = self.steps.iter().skip(step);
        trees
            .flat_map(|tree| roots_of(&self.roots, *tree))
            .collect()
    }

    /// Whether a root field is the first root field of the final statement in the result of the
    /// most recent call of [`Plan::steps`] or [`Plan::next`].
    pub fn is_last(&self, root: usize) -> bool {
        let last = self.steps.len().checked_sub(1);
        last.is_some_and(|last| self.root(last) == Some(root))
    }

    /// Makes a root field null in the data, even if its statement returned rows.
    pub fn show_null(&mut self, root: usize) {
        if let Some(root) = self.roots.get_mut(root) {
            root.output = RootOutput::Verbatim(Bytes::from_static(b"null"));
        }
    }

    /// Completes an error of PostgreSQL. Adds the path of the rejected value, if it can be found.
    /// PostgreSQL reports a violation of a view's check option without a relation, so this function
    /// adds the written relation. Other errors are returned unchanged. `step` has the same meaning
    /// as for [`Plan::root`].
    ///
    /// The path has to be searched for. If an insert has several objects, PostgreSQL reports the
    /// column of the value, but not the object. For a value that is too large, it reports only the
    /// limit.
    pub fn locate(&self, step: usize, error: tidegate_sql::Error) -> tidegate_sql::Error {
        let tree = self.steps.get(step).and_then(|tree| self.trees.get(*tree));
        match (error, tree) {
            (tidegate_sql::Error::Rejected(mut rejection), Some(tree)) => {
                if let Some(place) = tree.locate(&self.settings, &rejection) {
                    rejection.place = Some(place);
                }
                if rejection.sqlstate == WITH_CHECK_OPTION
                    && rejection.table.is_none()
                    && let Some(level) = tree.reader.levels.first()
                {
                    let relation = self.settings.schema.relation(level.relation);
                    rejection.table = Some(relation.name.to_string());
                }
                tidegate_sql::Error::Rejected(rejection)
            }
            (error, _) => error,
        }
    }

    /// Whether the plan writes, and its transaction is committed before [`Plan::finish`] is called.
    pub fn is_committed(&self) -> bool {
        matches!(
            self.mode,
            ExecutionMode::Together | ExecutionMode::AfterRows
        )
    }

    /// Takes the error of a row that was written and committed, but that the data cannot contain;
    /// `None` if the data contains all written rows. Only plans of [`ExecutionMode::Together`]
    /// leave out rows.
    pub fn dropped(&mut self) -> Option<tidegate_sql::Error> {
        self.trees.iter_mut().find_map(Tree::dropped)
    }

    /// The approximate number of bytes that [`Plan::finish`] will append. All statements must have
    /// run.
    pub fn size(&mut self) -> u64 {
        for tree in &mut self.trees {
            tree.link();
        }
        merge::size(&self.roots, &self.trees)
    }

    /// Appends the value of `data`, such as `{"getArtists":[…]}`. The statements of all fields must
    /// have run, except for fields that [`Plan::show_null`] made null.
    ///
    /// For [`ExecutionMode::Together`] and [`ExecutionMode::AfterRows`] the write is already
    /// committed, and its rows are within the limit. Therefore the object is appended even if the
    /// text around the rows makes it larger than the limit.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] if the object exceeds the limit in another mode.
    pub fn finish(mut self, out: &mut BytesMut) -> Result<PlanOutcome> {
        for tree in &mut self.trees {
            tree.link();
        }
        let mut limits = self.settings.limits;
        if self.is_committed() {
            limits.bytes = u64::MAX;
        }
        merge::data(&self.roots, &self.trees, &limits, out)
    }
}

/// The indexes of the root fields whose rows are in a tree.
fn roots_of(roots: &[Root], tree: usize) -> impl Iterator<Item = usize> {
    let roots = roots.iter().enumerate();
    roots.filter_map(move |(number, root)| match root.output {
        RootOutput::Rows { tree: shown, .. } if shown == tree => Some(number),
        _ => None,
    })
}

/// Wraps an error in [`Error::Root`] with the first root field of a tree.
fn of_tree(roots: &[Root], tree: usize, error: Error) -> Error {
    match roots_of(roots, tree).next() {
        Some(root) => Error::Root(Arc::clone(&roots[root].key), Box::new(error)),
        None => error,
    }
}

impl From<Error> for tidegate_sql::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Input(input) => Self::Input(input),
            Error::Root(_, error) => Self::from(*error),
            Error::TooLarge(limit) => Self::ResultTooLarge(limit),
            Error::Internal(problem) => Self::internal(problem),
            unbounded @ Error::Unbounded(_) => Self::Input(InputError::InvalidField {
                field: "where".to_owned(),
                problem: unbounded.to_string(),
            }),
        }
    }
}
