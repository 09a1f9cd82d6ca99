//! An operation on its way through its statements.

mod build;
mod harmless;
mod level;
mod measure;
mod merge;
mod part;
mod template;
mod tree;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tidegate_catalog::Schema;
use tidegate_sql::{InputError, Step};

use self::level::Settings;
pub use self::template::Template;
use self::tree::Tree;
use crate::{Error, Limits, Operation, Outcome, Result};

/// The SQLSTATE of a row that its view would not show.
const WITH_CHECK_OPTION: &str = "44000";

/// An operation on its way: statements come out, rows go in, the response's data comes out.
///
/// ```text
/// let mut plan = Plan::new(&schema, operation, &limits)?;
/// loop {
///     let steps = plan.steps()?;               // all statements that there are
///     executor.pipeline(…steps…).await?;       // in the transaction that plan.way() says
///     if !plan.restart() { break }             // rarely: lists were too long to share a limit
/// }
/// let outcome = plan.finish(&mut out)?;
/// ```
///
/// A mutation that shows relationships of what it wrote ([`Way::InTurn`]) gives its statements by
/// [`Plan::next`] instead.
#[derive(Debug)]
pub struct Plan<'a> {
    settings: Settings<'a>,
    way: Way,
    roots: Vec<Root>,
    trees: Vec<Tree<'a>>,
    /// The tree of each statement that was given last.
    steps: Vec<usize>,
    /// The tree whose statement [`Plan::next`] gave last.
    at: usize,
}

/// A root field.
#[derive(Clone, Debug)]
struct Root {
    key: Arc<str>,
    shows: RootShows,
}

/// What a root field shows.
#[derive(Clone, Debug)]
enum RootShows {
    /// The rows of a level of a tree.
    Rows { tree: usize, level: usize },
    /// Ready text.
    Verbatim(Bytes),
    /// What the caller puts there.
    Gap,
}

/// In what the statements of a plan are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// At most one statement, which cannot write: `Executor::query`.
    Alone,
    /// A pipeline in `Mode::Snapshot`: a query of several statements, or of one that could write.
    Snapshot,
    /// A pipeline in `Mode::ReadWrite` that commits with its statements: each writes one row.
    Together,
    /// A pipeline in `Mode::ReadWrite` that commits once its rows have been taken.
    AfterRows,
    /// A transaction in `Mode::ReadWrite`, one statement after another: relationships of rows that
    /// were written are read by what was returned of them.
    InTurn,
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

    /// As [`Plan::new`], but no two root fields share a statement ([`Plan::is_shared`]): then it is
    /// known which of them a failure is about.
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

    /// In what the statements are to be run.
    pub fn way(&self) -> Way {
        self.way
    }

    /// All statements: one for each root field that needs any, and one for all those that read
    /// one row each.
    ///
    /// # Errors
    ///
    /// [`Error::Root`] with [`Error::Input`] for a value that does not fit its column, with its
    /// place.
    pub fn steps(&mut self) -> Result<Vec<Step<'_>>> {
        self.steps.clear();
        for (number, tree) in self.trees.iter_mut().enumerate() {
            let begun = tree.begin(&self.settings);
            if begun.map_err(|error| of_tree(&self.roots, number, error))? {
                self.steps.push(number);
            }
        }
        Ok(self.trees.iter_mut().filter_map(Tree::step).collect())
    }

    /// Once all statements have run: whether [`Plan::steps`] has to be run again, in a transaction
    /// of its own, because lists that share a limit have reached it.
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

    /// The next statement of [`Way::InTurn`], once the one before it has been run to its end;
    /// `None` when there is none left.
    ///
    /// # Errors
    ///
    /// As [`Plan::steps`].
    #[expect(clippy::should_implement_trait, reason = "its items borrow the plan")]
    pub fn next(&mut self) -> Result<Option<Step<'_>>> {
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

    /// The number of the first root field that a statement is for, by its place among those that
    /// were given last.
    pub fn root(&self, step: usize) -> Option<usize> {
        let tree = self.steps.get(step)?;
        roots_of(&self.roots, *tree).next()
    }

    /// Whether a statement is for several root fields, by its place among those that were given
    /// last.
    pub fn is_shared(&self, step: usize) -> bool {
        let tree = self.steps.get(step);
        tree.is_some_and(|tree| roots_of(&self.roots, *tree).nth(1).is_some())
    }

    /// The numbers of the root fields whose statements stand from this place on.
    pub fn roots_from(&self, step: usize) -> Vec<usize> {
        let trees = self.steps.iter().skip(step);
        trees
            .flat_map(|tree| roots_of(&self.roots, *tree))
            .collect()
    }

    /// Whether the statement of a root field is the last of those that were given.
    pub fn is_last(&self, root: usize) -> bool {
        let last = self.steps.len().checked_sub(1);
        last.is_some_and(|last| self.root(last) == Some(root))
    }

    /// Shows null at a root field, whatever its statement gave or did not.
    pub fn show_null(&mut self, root: usize) {
        if let Some(root) = self.roots.get_mut(root) {
            root.shows = RootShows::Verbatim(Bytes::from_static(b"null"));
        }
    }

    /// Says where the value stands that PostgreSQL refused in a statement, by its place among those
    /// that were given last.
    /// Of an insert of many objects PostgreSQL sees one array a column, and tells the column alone;
    /// of a value beyond the length or precision of its column it tells the limit alone. Of a row
    /// that a view does not let in (WITH CHECK OPTION) it names no relation, so the one that was
    /// written is named. Any other error is given back as it is.
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

    /// Whether what was written is committed once its statements have run.
    pub fn is_committed(&self) -> bool {
        matches!(self.way, Way::Together | Way::AfterRows)
    }

    /// Why rows that were written and committed ([`Way::Together`]) cannot be shown.
    pub fn dropped(&mut self) -> Option<tidegate_sql::Error> {
        self.trees.iter_mut().find_map(Tree::dropped)
    }

    /// About how many bytes [`Plan::finish`] will append, once all statements have been run.
    pub fn size(&mut self) -> u64 {
        for tree in &mut self.trees {
            tree.link();
        }
        measure::size(&self.roots, &self.trees)
    }

    /// Appends the whole data object, `{"getArtists":[…]}`, once all statements have been run, but
    /// those of root fields that show null.
    ///
    /// What [`Way::Together`] and [`Way::AfterRows`] wrote is committed: it is given whatever the
    /// size of what stands around its rows, which are within the limit.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`].
    pub fn finish(mut self, out: &mut BytesMut) -> Result<Outcome> {
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

/// The numbers of the root fields that show rows of a tree.
fn roots_of(roots: &[Root], tree: usize) -> impl Iterator<Item = usize> {
    let roots = roots.iter().enumerate();
    roots.filter_map(move |(number, root)| match root.shows {
        RootShows::Rows { tree: shown, .. } if shown == tree => Some(number),
        _ => None,
    })
}

/// An error of the first root field of a tree.
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
            unbounded @ Error::Unbounded(_) => Self::Input(InputError::InvalidMember {
                member: "where".to_owned(),
                problem: unbounded.to_string(),
            }),
        }
    }
}
