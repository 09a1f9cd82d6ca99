//! Plans an operation, with a template if one fits.

use tidegate_plan::{Limits, Plan};

use super::{ExecutionFailure, Request};
use crate::definition::OperationKind;
use crate::error::FieldErrors;
use crate::large_text::LargeText;
use crate::lower::{self, Lowered, Lowerer, VariableUses};
use crate::templates::TemplateConditions;

/// The plan of an operation, and whether to make a template from it.
pub(super) struct Planned<'a> {
    pub(super) plan: Plan<'a>,
    pub(super) introspections: Vec<LargeText>,
    /// The conditions of the template that is to be made from the plan; `None` if no template is to
    /// be made.
    pub(super) conditions: Option<TemplateConditions>,
}

impl<'a> From<Plan<'a>> for Planned<'a> {
    fn from(plan: Plan<'a>) -> Self {
        Self {
            plan,
            introspections: Vec::new(),
            conditions: None,
        }
    }
}

impl<'r> Request<'r> {
    /// Plans the operation, with a template if one fits and otherwise from the document. If
    /// `together` is false, root fields do not share statements and no template is used.
    pub(super) fn plan(
        &self,
        errors: &mut FieldErrors,
        together: bool,
        limits: &Limits,
    ) -> Result<Planned<'r>, ExecutionFailure> {
        let templates = self.templates;
        let schema = self.api.schema();
        let variables = self.collect.variables;
        let share_plans =
            together && errors.is_empty() && self.operation.kind == OperationKind::Query;
        if share_plans {
            for cached in templates.matching(self.operation, variables) {
                let plan = cached
                    .template
                    .plan(schema, limits, &|number| variables.at(number));
                if let Some(plan) = plan {
                    templates.record_use(&cached);
                    return Ok(plan.into());
                }
            }
        }
        let trace = (share_plans && templates.should_make()).then_some(self.trace);
        let lowered = self.lower(errors, trace)?;
        let new = if together { Plan::new } else { Plan::separate };
        let plan = new(schema, lowered.planned, limits);
        let plan = plan.map_err(|error| self.of_plan(error))?;
        let conditions = trace.and_then(|trace| {
            trace.finish(self.collect.document, self.operation);
            let is_whole = errors.is_empty() && lowered.introspections.is_empty();
            let conditions = || TemplateConditions::of(self.operation, variables, trace);
            is_whole.then(conditions).flatten()
        });
        Ok(Planned {
            plan,
            introspections: lowered.introspections,
            conditions,
        })
    }

    /// Makes and caches a template from a plan, if `conditions` is given. The statements of the
    /// plan must have run.
    pub(super) fn share(&self, conditions: Option<TemplateConditions>, plan: &Plan<'_>) {
        if let Some(conditions) = conditions
            && let Some(template) = plan.template()
        {
            let budget = self.api.templates();
            self.templates.insert(conditions, template, budget);
        }
    }

    fn lower(
        &self,
        errors: &mut FieldErrors,
        trace: Option<&'r VariableUses>,
    ) -> Result<Lowered<'r>, ExecutionFailure> {
        let lowerer = Lowerer {
            schema: self.api.schema(),
            roots: self.api.roots(),
            collect: self.collect,
            variables: self.collect.variables,
            introspect: self.api,
            trace,
        };
        let made = lower::lower(lowerer, self.operation, self.api.limits(), errors);
        made.map_err(|error| {
            if error.path.is_empty() {
                ExecutionFailure::Invalid(vec![error])
            } else {
                ExecutionFailure::Operation(error)
            }
        })
    }
}
