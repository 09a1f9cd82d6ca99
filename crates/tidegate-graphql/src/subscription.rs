//! Subscriptions: read, checked and lowered here, executed by whoever follows the log.

use std::sync::Arc;

use serde_json::value::RawValue;
use tidegate_catalog::model::{ColumnId, Generated, RelationId};
use tidegate_filter::Json;
use tidegate_plan::operation::{Selection, Shows};

use crate::api::{Api, Prepared};
use crate::coerce::{Missing, Variables};
use crate::collect::{Collector, Group};
use crate::definition::Root;
use crate::document::OperationKind;
use crate::error::{Code, Error};
use crate::lower::Lowerer;

/// Which change of a row an event tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// INSERT.
    Added,
    /// UPDATE.
    Updated,
    /// DELETE.
    Deleted,
}

impl Change {
    pub(crate) const ALL: [Self; 3] = [Self::Added, Self::Updated, Self::Deleted];

    /// What the field's name ends in.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Added => "Added",
            Self::Updated => "Updated",
            Self::Deleted => "Deleted",
        }
    }

    pub(crate) const fn event(self) -> &'static str {
        match self {
            Self::Added => "New rows",
            Self::Updated => "Changed rows, as they are now,",
            Self::Deleted => "Removed rows, as they were,",
        }
    }
}

/// What a subscription asks for.
#[derive(Debug)]
pub struct Subscription {
    /// The response key of its root field: events are `{"data":{"<key>":[row]}}`.
    pub key: Arc<str>,
    /// Changes of which relation.
    pub relation: RelationId,
    /// Which changes.
    pub change: Change,
    /// What of each row: columns, parts of their values, and the type's name; no relationships.
    pub selection: Selection,
    /// Which rows: the JSON text of `where`, an object or a string that holds a condition text;
    /// `None` for all of them.
    pub condition: Option<Box<str>>,
}

impl Subscription {
    /// The columns that an event shows, each once.
    pub fn columns(&self) -> Vec<ColumnId> {
        let mut columns = Vec::new();
        for field in &self.selection.fields {
            if let Shows::Column(column) | Shows::Parts(column, _) = &field.shows
                && !columns.contains(column)
            {
                columns.push(*column);
            }
        }
        columns
    }
}

impl Api {
    /// Lowers a subscription, with the values of its variables.
    ///
    /// # Errors
    ///
    /// `BAD_USER_INPUT` and `GRAPHQL_VALIDATION_FAILED`: a variable without a value, an operation
    /// that is no subscription, a relationship or a virtual generated column in the selection.
    pub fn subscribe(
        &self,
        prepared: &Prepared,
        variables: Option<&RawValue>,
    ) -> Result<Subscription, Vec<Error>> {
        let (document, operation) = prepared
            .operation()
            .filter(|(_, operation)| operation.kind == OperationKind::Subscription)
            .ok_or_else(|| vec![Error::input("the operation is no subscription")])?;
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
            trace: None,
        };
        let groups = collect.fields(&operation.selection);
        let groups = groups.map_err(|error| vec![error])?;
        let [group] = &groups[..] else {
            return Err(vec![Error::input("a subscription has one root field")]);
        };
        self.message(&lowerer, group)
            .map_err(|error| vec![error.within(group.key(), group.field.location)])
    }

    fn message(&self, lowerer: &Lowerer<'_>, group: &Group<'_>) -> Result<Subscription, Error> {
        let name = &*group.field.name;
        let Some(Root::Message(relation, change)) = self.roots().subscription(name) else {
            return Err(crate::lower::unknown_field(name));
        };
        let selection = lowerer.selection(relation, group)?;
        for field in &selection.fields {
            self.followed(relation, &field.shows)
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

    /// Whether the log tells what a field shows.
    fn followed(&self, relation: RelationId, shows: &Shows) -> Result<(), String> {
        let relation = self.schema().relation(relation);
        match shows {
            Shows::One(..) | Shows::Many(..) => {
                Err("an event is one row: relationships cannot be selected".to_owned())
            }
            Shows::Column(column) | Shows::Parts(column, _) => {
                let column = relation.column(*column);
                match column.generated {
                    Some(Generated::Virtual) => Err(format!(
                        "`{}` is a virtual generated column, which the log does not hold",
                        column.field
                    )),
                    // Whether the log holds it depends on the server's version: the feed knows.
                    Some(Generated::Stored) | None => Ok(()),
                }
            }
            Shows::Typename => Ok(()),
        }
    }
}

impl<'d> Lowerer<'d> {
    /// The `where` of a subscription, as it is.
    fn condition(&self, group: &Group<'d>) -> Result<Option<Json<'d>>, Error> {
        let Some(argument) = group.field.argument("where") else {
            return Ok(None);
        };
        let value = self.variables.value(&argument.value, Missing::Refuse);
        let value = value.map_err(|error| error.at(argument.location))?;
        Ok(value.filter(|value| !value.is_null()))
    }
}
