//! Templates: the parts of a plan that can be reused for queries that differ only in values.

use std::sync::Arc;

use tidegate_catalog::{RelationId, Schema};
use tidegate_filter::{Comparison, Json};
use tidegate_sql::{BoundStatement, Statement};
use tidegate_values::Parameter;

use super::level::{Level, RowSource, Settings};
use super::reading::{self, Reading};
use super::tree::Tree;
use super::{ExecutionMode, Plan, Root, RootOutput};
use crate::Limits;
use crate::operation::{List, VariableSources};
use crate::row::{Keys, LevelRows, Program};
use crate::statement::{Page, number};

/// A plan without the values of the query's variables. [`Template::plan`] adds the values of
/// another request, which saves writing the SQL again.
#[derive(Debug)]
pub struct Template {
    mode: ExecutionMode,
    roots: Vec<Root>,
    trees: Vec<TemplateTree>,
}

/// The part of a template for a tree.
#[derive(Debug)]
struct TemplateTree {
    levels: Vec<TemplateLevel>,
    statement: Arc<Statement>,
    /// The paths of the parameters in the request, for errors.
    places: Vec<Arc<str>>,
    /// For each parameter, the source of its value.
    values: Vec<Value>,
    reading: Reading,
}

/// The part of a template for a level.
#[derive(Debug)]
struct TemplateLevel {
    relation: RelationId,
    above: Option<(usize, usize)>,
    /// The source of the rows. The values were removed from its filter.
    source: RowSource<'static>,
    page: Page,
    program: Arc<Program>,
    /// For each child, an empty key set for the columns of its key.
    children: Vec<Keys>,
}

/// The source of a parameter's value.
#[derive(Debug)]
enum Value {
    /// The value is the same for all requests.
    Own(Parameter),
    /// The value of a variable that a filter compares with a column. The fields are the index of
    /// the variable, the relation of the column, and the comparison without its value.
    Compared(usize, RelationId, Comparison),
    /// The number of rows to fetch for the page of the level with this index.
    Fetched(usize),
    /// The number of rows that the page of the level with this index skips.
    Offset(usize),
}

impl Plan<'_> {
    /// Makes a template for other requests of the same structure. Must be called after
    /// [`Plan::steps`]. Returns `None` for an operation that has to be planned each time: an
    /// aggregate, a write, a query that was restarted, and an operation with an insertion point or
    /// with a filter whose SQL depends on the value of a variable.
    ///
    /// Every value that may differ between the requests must be in the [`VariableSources`] of its
    /// list.
    pub fn template(&self) -> Option<Template> {
        let plain = |root: &Root| !matches!(root.output, RootOutput::Inserted);
        if !matches!(self.mode, ExecutionMode::Single | ExecutionMode::Snapshot)
            || !self.roots.iter().all(plain)
        {
            return None;
        }
        let trees = self.trees.iter().map(|tree| known(&self.settings, tree));
        Some(Template {
            mode: self.mode,
            roots: self.roots.clone(),
            trees: trees.collect::<Option<_>>()?,
        })
    }

    /// Whether [`Template::plan`] made the plan. Such a plan cannot run again after
    /// [`Plan::restart`] returned true; the operation has to be planned with [`Plan::new`].
    pub fn is_from_template(&self) -> bool {
        self.trees.iter().any(|tree| tree.is_bound)
    }
}

impl Template {
    /// Makes the plan of a query with other values. `variable` returns the value of the variable
    /// with a given index; `None` if the variable has no value. Each value must have the same JSON
    /// kind as when the template was made. Returns `None` if a value is invalid or needs another
    /// statement. The operation must then be planned with [`Plan::new`].
    pub fn plan<'a, 'j>(
        &self,
        schema: &'a Schema,
        limits: &Limits,
        variable: &dyn Fn(usize) -> Option<&'j Json<'j>>,
    ) -> Option<Plan<'a>> {
        let settings = Settings {
            schema,
            limits: *limits,
        };
        let trees = self.trees.iter().map(|tree| tree.bind(&settings, variable));
        Some(Plan {
            settings,
            mode: self.mode,
            roots: self.roots.clone(),
            trees: trees.collect::<Option<_>>()?,
            steps: Vec::new(),
            at: 0,
        })
    }

    /// The approximate size of the template in bytes.
    pub fn size(&self) -> usize {
        let roots = self.roots.iter().map(|root| match &root.output {
            RootOutput::Verbatim(text) => text.len(),
            RootOutput::Rows { .. } | RootOutput::Inserted => 0,
        });
        roots.chain(self.trees.iter().map(TemplateTree::size)).sum()
    }
}

fn known(settings: &Settings<'_>, tree: &Tree<'_>) -> Option<TemplateTree> {
    let (bound, reading) = tree.reading()?;
    let [set] = &bound.sets[..] else {
        return None;
    };
    let levels = &tree.reader.levels;
    // The values are collected level by level, but each is stored at the index of its parameter.
    let mut values: Vec<Option<Value>> = set.iter().map(|_| None).collect();
    for (at, level) in levels.iter().enumerate() {
        let range = reading.parameters.get(at)?.clone();
        let own = level_values(settings, at, level, &set[range.clone()])?;
        for (place, value) in values[range].iter_mut().zip(own) {
            *place = Some(value);
        }
    }
    Some(TemplateTree {
        levels: levels
            .iter()
            .map(|level| known_level(settings, level))
            .collect::<Option<_>>()?,
        statement: Arc::clone(&bound.statement),
        places: bound.places.clone(),
        values: values.into_iter().collect::<Option<_>>()?,
        reading: reading.clone(),
    })
}

fn known_level(settings: &Settings<'_>, level: &Level<'_>) -> Option<TemplateLevel> {
    let bare = |list: &List| {
        Arc::new(List {
            filter: list.filter.without_values(),
            order: list.order.clone(),
            origins: list.origins.clone(),
            selection: crate::operation::Selection::default(),
            ..*list
        })
    };
    let source = match &level.source {
        RowSource::List(list) => RowSource::List(bare(list)),
        RowSource::Children(list) => RowSource::Children(bare(list)),
        RowSource::One => RowSource::One,
        _ => return None,
    };
    let children = level.rows.written.children.iter();
    Some(TemplateLevel {
        relation: level.relation,
        above: level.above,
        source,
        page: level.page(settings),
        program: Arc::clone(&level.rows.program),
        children: children.map(Keys::new_empty).collect(),
    })
}

/// For each parameter of a level, the source of its value. The parameters of the filter come first,
/// and then those of the page. `None` if the level cannot be a part of a template.
fn level_values(
    settings: &Settings<'_>,
    at: usize,
    level: &Level<'_>,
    given: &[Parameter],
) -> Option<Vec<Value>> {
    let Some(list) = level.list() else {
        return given.is_empty().then(Vec::new);
    };
    let mut values = Vec::with_capacity(given.len());
    let leaves = list.filter.leaves(settings.schema, level.relation);
    for (number, leaf) in leaves.iter().enumerate() {
        let Some(variable) = list.origins.filter.get(number).copied().flatten() else {
            let own = given.iter().skip(values.len()).take(leaf.parameters);
            values.extend(own.cloned().map(Value::Own));
            continue;
        };
        let relation = settings.schema.relation(leaf.relation);
        if leaf.parameters != 1 || !leaf.comparison.is_uniform(relation) {
            return None;
        }
        let compared = leaf.comparison.without_value();
        values.push(Value::Compared(variable, leaf.relation, compared));
    }
    let page = level.page(settings);
    if page.has_parameters() {
        values.push(Value::Fetched(at));
        if page.offset > 0 {
            values.push(Value::Offset(at));
        }
    }
    (values.len() == given.len()).then_some(values)
}

impl TemplateTree {
    fn bind<'a, 'j>(
        &self,
        settings: &Settings<'a>,
        variable: &dyn Fn(usize) -> Option<&'j Json<'j>>,
    ) -> Option<Tree<'a>> {
        let pages = self.levels.iter();
        let pages = pages.map(|level| level.page(&settings.limits, variable));
        let pages: Vec<_> = pages.collect::<Option<_>>()?;
        let values = self.values.iter().map(|value| match value {
            Value::Own(parameter) => Some(parameter.clone()),
            Value::Compared(number, relation, comparison) => {
                comparison.rebind(settings.schema.relation(*relation), variable(*number)?)
            }
            Value::Fetched(level) => Some(number(pages.get(*level)?.fetched)),
            Value::Offset(level) => Some(number(pages.get(*level)?.offset)),
        });
        let statement = BoundStatement {
            statement: Arc::clone(&self.statement),
            hints: Vec::new(),
            formats: Vec::new(),
            sets: vec![values.collect::<Option<_>>()?],
            listed: false,
            places: self.places.clone(),
        };
        let levels = self.levels.iter();
        let mut levels: Vec<_> = levels
            .map(|level| level.new_level(settings.limits.bytes))
            .collect();
        for (at, page) in pages.iter().enumerate() {
            reading::restart(&mut levels, (at, 0), page);
        }
        Some(Tree::bound(levels, statement, self.reading.clone()))
    }

    fn size(&self) -> usize {
        const LEVEL: usize = 1024;
        let levels = self.levels.iter().map(|level| {
            let program = &level.program;
            program.literals.len() + (program.ops.len() + program.expressions.len()) * 64 + LEVEL
        });
        self.statement.text().len() + self.values.len() * 128 + levels.sum::<usize>()
    }
}

impl TemplateLevel {
    /// The page that `limit` and `offset` select with the values of the variables; `None` if a
    /// value is invalid, or if the page needs another statement.
    fn page<'j>(
        &self,
        limits: &Limits,
        variable: &dyn Fn(usize) -> Option<&'j Json<'j>>,
    ) -> Option<Page> {
        let (RowSource::List(list) | RowSource::Children(list)) = &self.source else {
            return Some(self.page);
        };
        let VariableSources { limit, offset, .. } = &list.origins;
        let count = |number: usize| variable(number)?.text().parse().ok();
        let limit = match limit {
            Some(number) => Some(count(*number)?),
            None => list.limit,
        };
        let offset = match offset {
            Some(number) => Some(count(*number)?),
            None => list.offset,
        };
        let page = Page {
            single: self.page.single,
            ..Page::new(limit, offset, limits)
        };
        page.has_same_sql(&self.page).then_some(page)
    }

    fn new_level<'a>(&self, limit: u64) -> Level<'a> {
        let children = self.children.iter().map(Keys::new_empty).collect();
        Level {
            relation: self.relation,
            above: self.above,
            source: self.source.share(),
            rows: LevelRows::new(Arc::clone(&self.program), children, limit),
        }
    }
}

impl RowSource<'static> {
    /// The same source, for the plan of another request.
    fn share<'a>(&self) -> RowSource<'a> {
        match self {
            Self::List(list) => RowSource::List(Arc::clone(list)),
            Self::Children(list) => RowSource::Children(Arc::clone(list)),
            _ => RowSource::One,
        }
    }
}
