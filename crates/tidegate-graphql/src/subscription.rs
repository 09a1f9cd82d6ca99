//! Lowers subscriptions: converts them into the form that the change feed executes.

use std::sync::Arc;

use serde_json::value::RawValue;
use tidegate_catalog::model::{ColumnId, Generated, RelationId};
use tidegate_filter::Json;
use tidegate_plan::operation::{Output, Selection};

use crate::api::{Api, PreparedOperation};
use crate::collect::{CollectedField, Collector};
use crate::definition::{ChangeKind, OperationKind, Root};
use crate::document::{Missing, Variables};
use crate::error::{Code, Error};
use crate::lower::Lowerer;

/// A lowered subscription, with the values of its variables.
#[derive(Debug)]
pub struct Subscription {
    /// The response key of the root field. Events have the form `{"data":{"<key>":[row]}}`.
    pub key: Arc<str>,
    /// The relation whose changes the subscription reports.
    pub relation: RelationId,
    /// The kind of changes that the subscription reports.
    pub change: ChangeKind,
    /// The fields of a row: columns, their subfields and the type name. There are no relationships.
    pub selection: Selection,
    /// The JSON text of the argument `where`: an object, or a string with a condition. `None` if
    /// the argument is absent or null; then changes of all rows are reported.
    pub condition: Option<Box<str>>,
}

impl Subscription {
    /// The columns whose values an event needs, without duplicates.
    pub fn columns(&self) -> Vec<ColumnId> {
        let mut columns = Vec::new();
        for field in &self.selection.fields {
            if let Output::Column(column) | Output::Parts(column, _) = &field.output
                && !columns.contains(column)
            {
                columns.push(*column);
            }
        }
        columns
    }
}

impl Api {
    /// Lowers a subscription with the values of its variables.
    ///
    /// # Errors
    ///
    /// `BAD_USER_INPUT` for a missing or invalid value of a variable, for an operation that is not
    /// a subscription or does not have exactly one root field, and for a relationship or virtual
    /// generated column in the selection. The condition in `where` is not checked here, because the
    /// feed parses it.
    pub fn subscribe(
        &self,
        prepared: &PreparedOperation,
        variables: Option<&RawValue>,
    ) -> Result<Subscription, Vec<Error>> {
        let (document, operation) = prepared
            .operation()
            .filter(|(_, operation)| operation.kind == OperationKind::Subscription)
            .ok_or_else(|| vec![Error::input("the operation is not a subscription")])?;
        let variables = Variables::coerce(operation, variables)?;
        let collect = Collector {
            document,
            variables: &variables,
        };
        let lowerer = Lowerer {
            schema: self.schema(),
            roots: self.roots(),
            collect,
            variables: &variables,
            introspect: self,
            variable_uses: None,
        };
        let groups = collect.fields(&operation.selection);
        let groups = groups.map_err(|error| vec![error])?;
        let [group] = &groups[..] else {
            return Err(vec![Error::input("a subscription has one root field")]);
        };
        self.message(&lowerer, group)
            .map_err(|error| vec![error.within(group.key(), group.field.location)])
    }

    fn message(
        &self,
        lowerer: &Lowerer<'_>,
        group: &CollectedField<'_>,
    ) -> Result<Subscription, Error> {
        let name = &*group.field.name;
        let Some(Root::Message(relation, change)) = self.roots().subscription(name) else {
            return Err(crate::lower::unknown_field(name));
        };
        let selection = lowerer.selection(relation, group)?;
        for field in &selection.fields {
            self.check_field(relation, &field.output)
                .map_err(|problem| Error::new(Code::BadUserInput, problem))?;
        }
        let condition = lowerer.condition(group)?;
        Ok(Subscription {
            key: Arc::clone(group.key()),
            relation,
            change,
            selection,
            condition: condition.map(|condition| condition.text().into()),
        })
    }

    /// Checks that the change log can contain the value of a field.
    fn check_field(&self, relation: RelationId, output: &Output) -> Result<(), String> {
        let relation = self.schema().relation(relation);
        match output {
            Output::One(..) | Output::Many(..) => {
                Err("an event is one row: relationships cannot be selected".to_owned())
            }
            Output::Column(column) | Output::Parts(column, _) => {
                let column = relation.column(*column);
                match column.generated {
                    Some(Generated::Virtual) => Err(format!(
                        "`{}` is a virtual generated column, which the log does not hold",
                        column.field
                    )),
                    // The feed checks stored generated columns, because the version of PostgreSQL
                    // decides whether the change log contains them.
                    Some(Generated::Stored) | None => Ok(()),
                }
            }
            Output::Typename => Ok(()),
        }
    }
}

impl<'d> Lowerer<'d> {
    /// The value of the argument `where` of a subscription; `None` if it is absent or null. The
    /// feed parses the value.
    fn condition(&self, group: &CollectedField<'d>) -> Result<Option<Json<'d>>, Error> {
        let Some(argument) = group.field.argument("where") else {
            return Ok(None);
        };
        let value = self.variables.value(&argument.value, Missing::Refuse);
        let value = value.map_err(|error| error.at(argument.location))?;
        Ok(value.filter(|value| !value.is_null()))
    }
}
