//! Templates of an operation: what its requests share when only values of variables differ.
//!
//! A template fits a request if each variable has the value that it was made with, or, where the
//! variable's value does nothing but become a parameter of a statement, a value of the same kind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_plan::Template;
use tidegate_values::json::JsonKind;

use crate::coerce::Variables;
use crate::document::Operation;
use crate::lower::Trace;

/// Templates of one operation.
const MOST: usize = 4;
/// Bytes of all templates of an API.
const BYTES: usize = 8 << 20;
/// So many are made without asking whether they are used.
const TRIALS: u64 = 8;
/// So often each has to be used after that, in the mean: making one costs about as much as planning
/// without one.
const USES: u64 = 4;
/// Bytes of values that a template may depend on.
const VALUES: usize = 1024;

/// The templates of an operation.
#[derive(Debug, Default)]
pub(crate) struct Templates(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The one used last stands last.
    kept: Vec<Arc<Kept>>,
    planned: u64,
    made: u64,
    used: u64,
    forbidden: bool,
}

/// A template with what it fits.
#[derive(Debug)]
pub(crate) struct Kept {
    shape: Shape,
    pub template: Template,
    _room: Room,
}

/// What is required of the variables of an operation, in their order.
#[derive(Debug, PartialEq)]
pub(crate) struct Shape(Box<[Given]>);

#[derive(Debug, PartialEq)]
enum Given {
    /// No value.
    Absent,
    /// This JSON text.
    Exactly(Box<str>),
    /// A value of this kind.
    Kind(JsonKind),
}

/// The room that the templates of an API have left.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<AtomicUsize>);

/// Room that is taken until it is dropped.
#[derive(Debug)]
struct Room {
    bytes: usize,
    of: Budget,
}

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(BYTES)))
    }
}

impl Budget {
    fn take(&self, bytes: usize) -> Option<Room> {
        let less = |left: usize| left.checked_sub(bytes);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.is_ok().then(|| Room {
            bytes,
            of: self.clone(),
        })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.of.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

impl Templates {
    /// Those that fit the variables, the one used last first.
    pub(crate) fn fitting(
        &self,
        operation: &Operation,
        variables: &Variables<'_>,
    ) -> Vec<Arc<Kept>> {
        let state = self.lock();
        let fits = |kept: &&Arc<Kept>| kept.shape.fits(operation, variables);
        state.kept.iter().rev().filter(fits).cloned().collect()
    }

    /// Notes that a template was used.
    pub(crate) fn used(&self, used: &Arc<Kept>) {
        let mut state = self.lock();
        state.used += 1;
        let at = state.kept.iter().position(|kept| Arc::ptr_eq(kept, used));
        if let Some(at) = at.filter(|at| at + 1 < state.kept.len()) {
            let kept = state.kept.remove(at);
            state.kept.push(kept);
        }
    }

    /// Whether a template is to be made of a request that had none: not of the first one, and not
    /// where templates are hardly used.
    pub(crate) fn wants_one(&self) -> bool {
        let mut state = self.lock();
        state.planned += 1;
        let pays = state.made < TRIALS || state.used > state.made * USES;
        let wanted = state.planned > 1 && pays && !state.forbidden;
        state.made += u64::from(wanted);
        wanted
    }

    /// Keeps a template.
    pub(crate) fn keep(&self, shape: Shape, template: Template, budget: &Budget) {
        let Some(room) = budget.take(template.size() + shape.size()) else {
            return;
        };
        let kept = Kept {
            shape,
            template,
            _room: room,
        };
        let mut state = self.lock();
        if state.forbidden {
            return;
        }
        if state.kept.len() >= MOST {
            state.kept.remove(0);
        }
        state.kept.push(Arc::new(kept));
    }

    /// Makes and keeps no more templates: requests had to be planned again.
    pub(crate) fn forbid(&self) {
        let mut state = self.lock();
        state.forbidden = true;
        state.kept.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shape {
    /// What a template requires that was made with these values; `None` where that is too much.
    pub(crate) fn of(
        operation: &Operation,
        variables: &Variables<'_>,
        trace: &Trace,
    ) -> Option<Self> {
        let given =
            operation
                .variables
                .iter()
                .map(|variable| match variables.get(&variable.name) {
                    None => Given::Absent,
                    Some(value) if trace.is_bound(&variable.name) => Given::Kind(value.kind()),
                    Some(value) => Given::Exactly(value.text().into()),
                });
        let shape = Self(given.collect());
        (shape.size() <= VALUES).then_some(shape)
    }

    fn fits(&self, operation: &Operation, variables: &Variables<'_>) -> bool {
        let definitions = operation.variables.iter();
        definitions.zip(&self.0).all(|(variable, required)| {
            match (required, variables.get(&variable.name)) {
                (Given::Absent, None) => true,
                (Given::Exactly(text), Some(value)) => value.text() == **text,
                (Given::Kind(kind), Some(value)) => value.kind() == *kind,
                _ => false,
            }
        })
    }

    fn size(&self) -> usize {
        let given = self.0.iter().map(|given| match given {
            Given::Exactly(text) => text.len() + 24,
            Given::Absent | Given::Kind(_) => 24,
        });
        given.sum()
    }
}
