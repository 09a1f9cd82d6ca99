//! Lowers root fields that return aggregates.

use std::sync::Arc;

use tidegate_catalog::model::{ColumnId, RelationId};
use tidegate_filter::Json;
use tidegate_plan::operation::{
    Aggregate, AggregateColumn, AggregateField, AggregateFunction, AggregateOutput,
};
use tidegate_values::json::JsonKind;

use super::{Lowerer, unknown_field};
use crate::collect::CollectedField;
use crate::definition::{
    AGGREGATE_FUNCTIONS, aggregate_type, aggregated, function_type, group_columns,
};
use crate::document::Missing;
use crate::error::Error;
use crate::field_type::{FieldType, Named};

impl<'d> Lowerer<'d> {
    pub(super) fn aggregate(
        &self,
        id: RelationId,
        group: &CollectedField<'d>,
    ) -> Result<Aggregate, Error> {
        let by = self.argument(group.field, "groupBy", Missing::Omit)?;
        let by = by.filter(|value| !value.is_null());
        // A value that is not a list is accepted as a list of one element (GraphQL, section 3.11,
        // "Input Coercion").
        let listed = |value: Json<'d>| match value.kind() {
            JsonKind::Array => value,
            _ => Json::List(vec![value]),
        };
        let by = by.map(|value| self.group_by(id, &listed(value)));
        let group_by = by.transpose()?.unwrap_or_default();
        let groups = self.collect.below(group)?;
        let fields = groups.iter().map(|group| {
            let output = self.aggregate_shows(id, &group_by, group);
            Ok(AggregateField {
                key: Arc::clone(group.key()),
                output: output.map_err(|error| error.within(group.key(), group.field.location))?,
            })
        });
        Ok(Aggregate {
            filter: self.rows(id, group.field)?,
            fields: fields.collect::<Result<_, Error>>()?,
            group_by,
        })
    }

    fn group_by(&self, id: RelationId, value: &Json<'_>) -> Result<Vec<ColumnId>, Error> {
        let relation = self.schema.relation(id);
        let mut columns = Vec::new();
        for (at, column) in self.columns(id, value, "groupBy")?.into_iter().enumerate() {
            if !relation.column(column).rights.select {
                let message = format!("`groupBy[{at}]` is a column that the role may not read");
                return Err(Error::input(message));
            }
            let known = relation.column(column);
            if !tidegate_filter::is_groupable(known) {
                let name = known.r#type.name();
                return Err(Error::input(format!(
                    "`groupBy[{at}]` cannot be: values of the type {name} make no groups"
                )));
            }
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        Ok(columns)
    }

    fn aggregate_shows(
        &self,
        id: RelationId,
        group_by: &[ColumnId],
        group: &CollectedField<'d>,
    ) -> Result<AggregateOutput, Error> {
        let relation = self.schema.relation(id);
        let name = &*group.field.name;
        match name {
            "__typename" => return Ok(AggregateOutput::Typename(aggregate_type(relation).into())),
            "count" => return Ok(AggregateOutput::Count),
            _ => {}
        }
        let mut functions = AGGREGATE_FUNCTIONS.iter().enumerate();
        if let Some((at, (_, function))) = functions.find(|(_, (known, _))| *known == name) {
            let type_name = function_type(relation, at);
            let members = self.function(id, *function, type_name, group)?;
            return Ok(AggregateOutput::Function(*function, members));
        }
        let mut columns = group_columns(relation);
        let column = columns.find(|(known, _)| known == name);
        let (_, column) = column.ok_or_else(|| unknown_field(name))?;
        if group_by.contains(&column) {
            let parts = match FieldType::of_column(relation, column).named {
                Named::Scalar(_) => Vec::new(),
                Named::Object(object) => self.parts(object, group)?,
            };
            Ok(AggregateOutput::Group(column, parts))
        } else {
            let column = &relation.column(column).field;
            Err(Error::input(format!(
                "`{column}` can be shown only when `groupBy` names it"
            )))
        }
    }

    fn function(
        &self,
        id: RelationId,
        function: AggregateFunction,
        type_name: &str,
        group: &CollectedField<'d>,
    ) -> Result<Vec<(Arc<str>, AggregateColumn)>, Error> {
        let relation = self.schema.relation(id);
        let groups = self.collect.below(group)?;
        let members = groups.iter().map(|group| {
            let name = &*group.field.name;
            let key = Arc::clone(group.key());
            if name == "__typename" {
                return Ok((key, AggregateColumn::Typename(type_name.into())));
            }
            let mut columns = relation.columns();
            let column = columns.find(|(id, column)| {
                &*column.field == name && aggregated(relation, *id, function).is_some()
            });
            let (column, _) = column.ok_or_else(|| unknown_field(name))?;
            Ok((key, AggregateColumn::Column(column)))
        });
        members.collect()
    }
}
