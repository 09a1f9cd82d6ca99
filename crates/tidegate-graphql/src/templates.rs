//! Caches templates of plans. Requests for the same operation can use the same template if they
//! differ only in the values of variables.
//!
//! A template fits a request if every variable satisfies one of two conditions. Either the variable
//! has the same value as when the template was made. Or the variable is used only as a parameter of
//! statements, and its value has the same JSON kind as when the template was made.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_plan::Template;
use tidegate_values::json::JsonKind;

use crate::document::{Operation, Variables};
use crate::lower::VariableUses;

/// The largest number of templates for one operation.
const MAX_TEMPLATES: usize = 4;
/// The largest size of all templates of an API together, in bytes.
const MAX_TOTAL_BYTES: usize = 8 << 20;
/// The number of templates that are made for an operation even if they are rarely used. Further
/// templates are made only if the templates are used often ([`MIN_USES_PER_TEMPLATE`]).
const TRIALS: u64 = 8;
/// The minimum average number of uses of each template before another template is made. Making a
/// template costs about as much as planning once.
const MIN_USES_PER_TEMPLATE: u64 = 4;
/// The largest size in bytes of the values on which a template depends.
const MAX_CONDITION_BYTES: usize = 1024;

/// The templates for one operation.
#[derive(Debug, Default)]
pub(crate) struct Templates(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The templates, in the order of their most recent use. The most recently used template comes
    /// last.
    kept: Vec<Arc<CachedTemplate>>,
    /// The number of requests that fitted no template.
    planned: u64,
    /// The number of templates that were made.
    made: u64,
    /// The number of uses of all templates together.
    used: u64,
    disabled: bool,
}

/// A template, with the conditions for its use.
#[derive(Debug)]
pub(crate) struct CachedTemplate {
    conditions: TemplateConditions,
    pub template: Template,
    _reservation: Reservation,
}

/// The conditions for the use of a template: one for each variable of the operation.
#[derive(Debug, PartialEq)]
pub(crate) struct TemplateConditions(Box<[VariableCondition]>);

#[derive(Debug, PartialEq)]
enum VariableCondition {
    /// The variable must have no value.
    Absent,
    /// The variable must have exactly this JSON text.
    Equals(Box<str>),
    /// The variable may have any value of this kind.
    Kind(JsonKind),
}

/// The number of bytes that are left for the templates of an API.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<AtomicUsize>);

/// Bytes of a budget that a template has reserved. Dropping this value returns the bytes to the
/// budget.
#[derive(Debug)]
struct Reservation {
    bytes: usize,
    of: Budget,
}

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(MAX_TOTAL_BYTES)))
    }
}

impl Budget {
    fn take(&self, bytes: usize) -> Option<Reservation> {
        let less = |left: usize| left.checked_sub(bytes);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.is_ok().then(|| Reservation {
            bytes,
            of: self.clone(),
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.of.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

impl Templates {
    /// The templates that fit the variables, the most recently used one first.
    pub(crate) fn matching(
        &self,
        operation: &Operation,
        variables: &Variables<'_>,
    ) -> Vec<Arc<CachedTemplate>> {
        let state = self.lock();
        let fits = |kept: &&Arc<CachedTemplate>| kept.conditions.fits(operation, variables);
        state.kept.iter().rev().filter(fits).cloned().collect()
    }

    /// Counts the use of a template, and makes it the most recently used one.
    pub(crate) fn record_use(&self, used: &Arc<CachedTemplate>) {
        let mut state = self.lock();
        state.used += 1;
        let at = state.kept.iter().position(|kept| Arc::ptr_eq(kept, used));
        if let Some(at) = at.filter(|at| at + 1 < state.kept.len()) {
            let kept = state.kept.remove(at);
            state.kept.push(kept);
        }
    }

    /// Decides whether to make a template for a request that fits no template, and counts the
    /// request. No template is made for the first request, or if templates are rarely used.
    pub(crate) fn should_make(&self) -> bool {
        let mut state = self.lock();
        state.planned += 1;
        let pays = state.made < TRIALS || state.used > state.made * MIN_USES_PER_TEMPLATE;
        let make = state.planned > 1 && pays && !state.disabled;
        state.made += u64::from(make);
        make
    }

    /// Caches a template, unless the budget is used up or templates are disabled. It replaces the
    /// least recently used template if there are too many.
    pub(crate) fn insert(
        &self,
        conditions: TemplateConditions,
        template: Template,
        budget: &Budget,
    ) {
        let Some(reservation) = budget.take(template.size() + conditions.size()) else {
            return;
        };
        let kept = CachedTemplate {
            conditions,
            template,
            _reservation: reservation,
        };
        let mut state = self.lock();
        if state.disabled {
            return;
        }
        if state.kept.len() >= MAX_TEMPLATES {
            state.kept.remove(0);
        }
        state.kept.push(Arc::new(kept));
    }

    /// Drops all templates, and caches no templates from now on. Called if the results of a plan
    /// from a template were incomplete, because such a plan cannot run again.
    pub(crate) fn disable(&self) {
        let mut state = self.lock();
        state.disabled = true;
        state.kept.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TemplateConditions {
    /// The conditions of a template that is made with these values of the variables; `None` if the
    /// conditions would be too large.
    pub(crate) fn of(
        operation: &Operation,
        variables: &Variables<'_>,
        variable_uses: &VariableUses,
    ) -> Option<Self> {
        let conditions =
            operation
                .variables
                .iter()
                .map(|variable| match variables.get(&variable.name) {
                    None => VariableCondition::Absent,
                    Some(value) if variable_uses.is_bound(&variable.name) => {
                        VariableCondition::Kind(value.kind())
                    }
                    Some(value) => VariableCondition::Equals(value.text().into()),
                });
        let conditions = Self(conditions.collect());
        (conditions.size() <= MAX_CONDITION_BYTES).then_some(conditions)
    }

    fn fits(&self, operation: &Operation, variables: &Variables<'_>) -> bool {
        let definitions = operation.variables.iter();
        definitions.zip(&self.0).all(|(variable, required)| {
            match (required, variables.get(&variable.name)) {
                (VariableCondition::Absent, None) => true,
                (VariableCondition::Equals(text), Some(value)) => value.text() == **text,
                (VariableCondition::Kind(kind), Some(value)) => value.kind() == *kind,
                _ => false,
            }
        })
    }

    fn size(&self) -> usize {
        let conditions = self.0.iter().map(|conditions| match conditions {
            VariableCondition::Equals(text) => text.len() + 24,
            VariableCondition::Absent | VariableCondition::Kind(_) => 24,
        });
        conditions.sum()
    }
}
