//! Plans an operation, with a template if one fits, and runs the statements of the plan.

use tidegate_plan::{ExecutionMode, Limits, Plan};
use tidegate_sql::{Commit, Mode, Pipeline, PipelineError, Transaction};

use super::{Context, ExecutionFailure, Request};
use crate::definition::OperationKind;
use crate::error::{Error, FieldErrors};
use crate::large_text::LargeText;
use crate::lower::{self, Lowered, Lowerer, VariableUses};
use crate::templates::TemplateConditions;

/// The plan of an operation, and the conditions for using it as a template.
pub(super) struct Planned<'a> {
    pub(super) plan: Plan<'a>,
    pub(super) introspections: Vec<LargeText>,
    /// The conditions that a later request must meet to use this plan as a template; `None` if no
    /// template is made.
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
        let variable_uses = (share_plans && templates.should_make()).then_some(self.variable_uses);
        let lowered = self.lower(errors, variable_uses)?;
        let new = if together { Plan::new } else { Plan::separate };
        let plan = new(schema, lowered.planned, limits);
        let plan = plan.map_err(|error| self.of_plan(error))?;
        let conditions = variable_uses.and_then(|variable_uses| {
            variable_uses.finish(self.collect.document, self.operation);
            let is_whole = errors.is_empty() && lowered.introspections.is_empty();
            let conditions = || TemplateConditions::of(self.operation, variables, variable_uses);
            is_whole.then(conditions).flatten()
        });
        Ok(Planned {
            plan,
            introspections: lowered.introspections,
            conditions,
        })
    }

    /// Makes a template from a plan and caches it. Does nothing if `conditions` is `None`. The
    /// statements of the plan must have run.
    pub(super) fn cache_template(&self, conditions: Option<TemplateConditions>, plan: &Plan<'_>) {
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
        variable_uses: Option<&'r VariableUses>,
    ) -> Result<Lowered<'r>, ExecutionFailure> {
        let lowerer = Lowerer {
            schema: self.api.schema(),
            roots: self.api.roots(),
            collect: self.collect,
            variables: self.collect.variables,
            introspect: self.api,
            variable_uses,
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

/// Runs the statements of a plan. Returns an open transaction that the caller has to commit; `None`
/// if nothing is left to commit.
///
/// # Errors
///
/// The first failure. `of_plan` converts the errors of the plan itself, such as an invalid value of
/// the request.
pub(super) async fn run<'c>(
    plan: &mut Plan<'_>,
    context: Context<'c>,
    of_plan: impl Fn(tidegate_plan::Error) -> ExecutionFailure,
) -> Result<Option<Box<dyn Transaction + 'c>>, ExecutionFailure> {
    if plan.mode() == ExecutionMode::InTurn {
        return run_in_turn(plan, context, of_plan).await.map(Some);
    }
    loop {
        let ran = send(plan, context, &of_plan).await?;
        ran.map_err(|failed| failure(plan, failed, &context))?;
        if !plan.restart() {
            return Ok(None);
        }
        if plan.is_from_template() {
            return Err(ExecutionFailure::TemplateUnusable);
        }
    }
}

/// Sends all statements in one pipeline. The outer result is the error of building the statements,
/// and the inner result is the error of running them.
async fn send(
    plan: &mut Plan<'_>,
    context: Context<'_>,
    of_plan: impl Fn(tidegate_plan::Error) -> ExecutionFailure,
) -> Result<Result<(), PipelineError>, ExecutionFailure> {
    let Context {
        executor,
        principal,
        options,
        ..
    } = context;
    let (mode, commit) = match plan.mode() {
        ExecutionMode::Single | ExecutionMode::Snapshot => (Mode::Snapshot, Commit::Together),
        ExecutionMode::Together => (Mode::ReadWrite, Commit::Together),
        ExecutionMode::AfterRows | ExecutionMode::InTurn => (Mode::ReadWrite, Commit::AfterRows),
    };
    let way = plan.mode();
    let mut steps = plan.steps().map_err(of_plan)?;
    Ok(match &mut steps[..] {
        [] => Ok(()),
        [step] if way == ExecutionMode::Single => {
            let query = executor.query(principal, step.statement, &options, &mut *step.sink);
            let ran = query.await.map(|_| ());
            ran.map_err(|error| PipelineError::at(0, error))
        }
        _ => {
            let pipeline = Pipeline {
                mode,
                steps,
                commit,
            };
            let ran = executor.pipeline(principal, pipeline, &options).await;
            ran.map(|_| ())
        }
    })
}

/// Runs the statements one after the other, because each statement needs the rows of the previous
/// statement.
async fn run_in_turn<'c>(
    plan: &mut Plan<'_>,
    context: Context<'c>,
    of_plan: impl Fn(tidegate_plan::Error) -> ExecutionFailure,
) -> Result<Box<dyn Transaction + 'c>, ExecutionFailure> {
    let Context {
        executor,
        principal,
        options,
        ..
    } = context;
    let opening = executor.begin(principal, Mode::ReadWrite, &options).await;
    let mut transaction =
        opening.map_err(|error| ExecutionFailure::of_sql(error, None, &context))?;
    while let Some(step) = plan.next().map_err(&of_plan)? {
        let ran = transaction.query(step.statement, step.sink).await;
        ran.map_err(|error| failure(plan, PipelineError::at(0, error), &context))?;
    }
    Ok(transaction)
}

/// The failure for the error of a pipeline.
fn failure(plan: &Plan<'_>, failed: PipelineError, context: &Context<'_>) -> ExecutionFailure {
    let PipelineError { step, error, .. } = failed;
    if let tidegate_sql::Error::Deadline = error {
        let roots = plan.roots_from(step.unwrap_or_default());
        return match Error::of_sql(error, context.principal, context.anonymous) {
            Ok(error) => ExecutionFailure::Deadline(roots, error),
            Err(error) => ExecutionFailure::Unavailable(error),
        };
    }
    let Some(step) = step else {
        return ExecutionFailure::of_sql(error, None, context);
    };
    let error = plan.locate(step, error);
    match ExecutionFailure::of_sql(error, plan.root(step), context) {
        ExecutionFailure::Field(_, error) | ExecutionFailure::Redefined(_, error)
            if plan.is_shared(step) =>
        {
            ExecutionFailure::Shared(error)
        }
        failure => failure,
    }
}
