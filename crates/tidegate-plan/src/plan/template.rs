//! What queries of one shape share: programs and statements. Only values differ.

use std::sync::Arc;

use tidegate_catalog::{RelationId, Schema};
use tidegate_filter::{Comparison, Json};
use tidegate_sql::{BoundStatement, Statement};
use tidegate_values::Parameter;

use super::level::{Level, Settings, Source};
use super::part::{self, Reading};
use super::tree::Tree;
use super::{Plan, Root, RootShows, Way};
use crate::Limits;
use crate::operation::{List, Origins};
use crate::row::{Keys, Program, Rows};
use crate::statement::{Page, number};

/// The plan of a query without the values that variables gave it: other values make the plan of
/// another request, and no statement is written again.
#[derive(Debug)]
pub struct Template {
    way: Way,
    roots: Vec<Root>,
    trees: Vec<Known>,
}

/// What is known of a tree.
#[derive(Debug)]
struct Known {
    levels: Vec<KnownLevel>,
    statement: Arc<Statement>,
    places: Vec<Arc<str>>,
    values: Vec<Value>,
    reading: Reading,
}

/// What is known of a level.
#[derive(Debug)]
struct KnownLevel {
    relation: RelationId,
    above: Option<(usize, usize)>,
    /// Its filter has no values.
    source: Source<'static>,
    page: Page,
    program: Arc<Program>,
    /// No keys, of the columns of each child.
    children: Vec<Keys>,
}

/// Where the value of a parameter comes from.
#[derive(Debug)]
enum Value {
    /// It is the same for all requests.
    Own(Parameter),
    /// A variable, by its number, that is compared with a column.
    Compared(usize, RelationId, Comparison),
    /// How many rows the page of a level has.
    Fetched(usize),
    /// How many rows the page of a level leaves out.
    Offset(usize),
}

impl Plan<'_> {
    /// What other requests of the same shape can use of a query whose statements have been given,
    /// by [`Plan::steps`]. `None` for what has to be planned each time: aggregates, writes, large
    /// introspection, and a query that had to begin again.
    ///
    /// Every value that may differ has to be among the [`Origins`] of its list.
    pub fn template(&self) -> Option<Template> {
        let plain = |root: &Root| !matches!(root.shows, RootShows::Gap);
        if !matches!(self.way, Way::Alone | Way::Snapshot) || !self.roots.iter().all(plain) {
            return None;
        }
        let trees = self.trees.iter().map(|tree| known(&self.settings, tree));
        Some(Template {
            way: self.way,
            roots: self.roots.clone(),
            trees: trees.collect::<Option<_>>()?,
        })
    }

    /// Whether it was made by [`Template::plan`]. Such a plan cannot be sent again when
    /// [`Plan::restart`] asks for it: the operation has to be planned anew.
    pub fn is_from_template(&self) -> bool {
        self.trees.iter().any(|tree| tree.is_bound)
    }
}

impl Template {
    /// The plan of a query of the same shape; `variable` gives the value of a variable by its
    /// number, which must have the JSON kind of the value that the template was made of. `None`
    /// where a value is refused or needs another statement; then the operation has to be planned.
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
            way: self.way,
            roots: self.roots.clone(),
            trees: trees.collect::<Option<_>>()?,
            steps: Vec::new(),
            at: 0,
        })
    }

    /// About how many bytes it takes.
    pub fn size(&self) -> usize {
        let roots = self.roots.iter().map(|root| match &root.shows {
            RootShows::Verbatim(text) => text.len(),
            RootShows::Rows { .. } | RootShows::Gap => 0,
        });
        roots.chain(self.trees.iter().map(Known::size)).sum()
    }
}

fn known(settings: &Settings<'_>, tree: &Tree<'_>) -> Option<Known> {
    let (bound, reading) = tree.reading()?;
    let [set] = &bound.sets[..] else {
        return None;
    };
    let levels = &tree.reader.levels;
    // In the order of the levels, which is not that of the parameters.
    let mut values: Vec<Option<Value>> = set.iter().map(|_| None).collect();
    for (at, level) in levels.iter().enumerate() {
        let range = reading.parameters.get(at)?.clone();
        let own = level_values(settings, (at, level), &set[range.clone()])?;
        for (place, value) in values[range].iter_mut().zip(own) {
            *place = Some(value);
        }
    }
    Some(Known {
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

fn known_level(settings: &Settings<'_>, level: &Level<'_>) -> Option<KnownLevel> {
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
        Source::List(list) => Source::List(bare(list)),
        Source::Children(list) => Source::Children(bare(list)),
        Source::One => Source::One,
        _ => return None,
    };
    let children = level.rows.written.children.iter();
    Some(KnownLevel {
        relation: level.relation,
        above: level.above,
        source,
        page: level.page(settings),
        program: Arc::clone(&level.rows.program),
        children: children.map(Keys::alike).collect(),
    })
}

/// Where the values of a level come from, in the order of its parameters: those of its filter, and
/// then those of its page.
fn level_values(
    settings: &Settings<'_>,
    (at, level): (usize, &Level<'_>),
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
    if page.given {
        values.push(Value::Fetched(at));
        if page.offset > 0 {
            values.push(Value::Offset(at));
        }
    }
    (values.len() == given.len()).then_some(values)
}

impl Known {
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
            .map(|level| level.fresh(settings.limits.bytes))
            .collect();
        for (at, page) in pages.iter().enumerate() {
            part::restart(&mut levels, (at, 0), page);
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

impl KnownLevel {
    /// The page that the variables ask for, if it needs no other statement.
    fn page<'j>(
        &self,
        limits: &Limits,
        variable: &dyn Fn(usize) -> Option<&'j Json<'j>>,
    ) -> Option<Page> {
        let (Source::List(list) | Source::Children(list)) = &self.source else {
            return Some(self.page);
        };
        let Origins { limit, offset, .. } = &list.origins;
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
        page.is_alike(&self.page).then_some(page)
    }

    fn fresh<'a>(&self, limit: u64) -> Level<'a> {
        let children = self.children.iter().map(Keys::alike).collect();
        Level {
            relation: self.relation,
            above: self.above,
            source: self.source.share(),
            rows: Rows::new(Arc::clone(&self.program), children, limit),
        }
    }
}

impl Source<'static> {
    /// The same list for another request.
    fn share<'a>(&self) -> Source<'a> {
        match self {
            Self::List(list) => Source::List(Arc::clone(list)),
            Self::Children(list) => Source::Children(Arc::clone(list)),
            _ => Source::One,
        }
    }
}
