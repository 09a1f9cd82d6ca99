//! Compiles a selection into the program that writes its rows.

use std::mem;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_catalog::model::{Cardinality, Relationship};
use tidegate_catalog::{ColumnId, RelationId, RelationshipId, Schema};
use tidegate_values::codec::json_string;

use super::keys::KeyKind;
use super::program::{Child, Expression, Join, Op, OutputForm, Program};
use super::projection::{self, Cast};
use crate::operation::{
    Aggregate, AggregateColumn, AggregateField, AggregateFunction, AggregateOutput, List, Output,
    SelectedField, Selection,
};

/// The initial capacity for the literals in bytes, enough for a typical selection.
const LITERALS: usize = 256;

/// Compiles the selection of one level, and collects the levels below it.
pub(crate) struct Compiler<'a, 'n> {
    schema: &'a Schema,
    program: Program,
    /// The offset at which the literals of the next instruction start.
    pending: usize,
    /// Whether the statement may join the rows of to-one relationships. A `returning` clause cannot
    /// join.
    joins: bool,
    /// The response keys of the joined to-one relationships on the path from the row to the object
    /// that is being compiled.
    around: Vec<Arc<str>>,
    /// Adds a child level and returns its index. The list is `None` for a to-one relationship.
    nest: &'n mut dyn FnMut(&'a Relationship, Option<Arc<List>>, Selection) -> usize,
}

impl<'a, 'n> Compiler<'a, 'n> {
    /// Compiles the program that turns the rows of a level into JSON. The level reads or writes
    /// `relation`.
    pub(crate) fn rows(
        schema: &'a Schema,
        relation: RelationId,
        selection: Selection,
        joins: bool,
        nest: &'n mut dyn FnMut(&'a Relationship, Option<Arc<List>>, Selection) -> usize,
    ) -> Program {
        let mut compiler = Compiler {
            schema,
            program: Program {
                literals: BytesMut::with_capacity(LITERALS),
                ..Program::default()
            },
            pending: 0,
            joins,
            around: Vec::new(),
            nest,
        };
        let fields = selection.fields.len();
        compiler.program.ops.reserve(fields + 1);
        compiler.program.expressions.reserve(fields);
        compiler.program.tables.push(relation);
        compiler.object(0, selection);
        compiler.flush();
        compiler.program
    }

    /// Compiles the JSON object for one row of a table.
    fn object(&mut self, table: usize, selection: Selection) {
        let relation = self.program.tables[table];
        self.push(b"{");
        for (at, SelectedField { key, output }) in selection.fields.into_iter().enumerate() {
            if at > 0 {
                self.push(b",");
            }
            self.key(&key);
            match output {
                Output::Typename => {
                    let name = &self.schema[relation].type_name;
                    json_string(name.as_bytes(), &mut self.program.literals);
                }
                Output::Column(column) => {
                    let form = if self.schema[relation].is_key(column) {
                        OutputForm::Id
                    } else {
                        OutputForm::Value
                    };
                    self.value(table, column, key, form);
                }
                Output::Parts(column, parts) => {
                    self.value(table, column, key, OutputForm::Parts(parts.into()));
                }
                Output::One(id, selection) => {
                    if self.joins {
                        self.join(table, id, key, selection);
                    } else {
                        self.children(table, id, key, (None, selection));
                    }
                }
                Output::Many(id, mut list) => {
                    let selection = mem::take(&mut list.selection);
                    let rows = (Some(Arc::new(list)), selection);
                    self.children(table, id, key, rows);
                }
            }
        }
        self.push(b"}");
    }

    fn value(&mut self, table: usize, column: ColumnId, key: Arc<str>, form: OutputForm) {
        let relation = &self.schema[self.program.tables[table]];
        let cast = projection::cast(relation, column);
        self.program.expressions.push(Expression::Column {
            table,
            column,
            cast,
        });
        let text = self.text();
        self.program.ops.push(Op::Value {
            text,
            within: None,
            key,
            not_null: relation.column(column).not_null,
            form,
        });
    }

    fn join(&mut self, from: usize, id: RelationshipId, key: Arc<str>, selection: Selection) {
        let relationship = self.schema[self.program.tables[from]].relationship(id);
        let to = self.program.tables.len();
        self.program.tables.push(relationship.target);
        self.program.joins.push(Join {
            from,
            to,
            relationship: id,
        });
        // The writer of the row needs to know whether a joined row exists. The first join column
        // shows this, because it is NULL only if there is no joined row. So this column is
        // selected.
        if let Some(&column) = relationship.target_columns.first() {
            self.program.expressions.push(Expression::Column {
                table: to,
                column,
                cast: Cast::None,
            });
        }
        let text = self.text();
        let at = self.program.ops.len();
        self.program.ops.push(Op::Text(text.clone()));
        self.around.push(key.clone());
        self.object(to, selection);
        self.around.pop();
        self.flush();
        self.program.ops[at] = Op::Joined {
            text,
            key,
            end: self.program.ops.len(),
            columns: self.program.expressions.len(),
        };
    }

    /// Compiles a relationship whose rows are read by a level of their own. `list` is `None` for a
    /// to-one relationship.
    fn children(
        &mut self,
        table: usize,
        id: RelationshipId,
        key: Arc<str>,
        (list, selection): (Option<Arc<List>>, Selection),
    ) {
        let relation = &self.schema[self.program.tables[table]];
        let relationship = relation.relationship(id);
        let first = self.program.expressions.len();
        for &column in &relationship.columns {
            let cast = match KeyKind::of(&relation.column(column).r#type) {
                KeyKind::Integer => Cast::None,
                KeyKind::Text => Cast::Text,
            };
            self.program.expressions.push(Expression::Column {
                table,
                column,
                cast,
            });
        }
        let level = (self.nest)(relationship, list, selection);
        let text = self.text();
        self.program.ops.push(Op::Children {
            text,
            child: self.program.children.len(),
        });
        self.program.children.push(Child {
            around: self.around.clone(),
            name: key,
            from: self.program.tables[table],
            table,
            key: first..first + relationship.columns.len(),
            level,
            relationship: id,
            one: relationship.cardinality == Cardinality::One,
        });
    }

    fn key(&mut self, key: &str) {
        json_string(key.as_bytes(), &mut self.program.literals);
        self.push(b":");
    }

    fn push(&mut self, text: &[u8]) {
        self.program.literals.extend_from_slice(text);
    }

    /// Takes the range of the literals that were added since the last instruction.
    fn text(&mut self) -> std::ops::Range<usize> {
        let end = self.program.literals.len();
        mem::replace(&mut self.pending, end)..end
    }

    /// Adds an instruction for the literals that were added since the last instruction.
    fn flush(&mut self) {
        let text = self.text();
        self.program.ops.push(Op::Text(text));
    }
}

/// Compiles the program that writes the groups of an aggregate.
pub(crate) fn aggregate<'a>(
    schema: &'a Schema,
    relation: RelationId,
    wanted: &Aggregate,
) -> Program {
    let mut nest = |_: &'a Relationship, _: Option<Arc<List>>, _: Selection| 0;
    let mut compiler = Compiler {
        schema,
        program: Program::default(),
        pending: 0,
        joins: false,
        around: Vec::new(),
        nest: &mut nest,
    };
    compiler.program.tables.push(relation);
    compiler.push(b"{");
    for (at, field) in wanted.fields.iter().enumerate() {
        if at > 0 {
            compiler.push(b",");
        }
        compiler.key(&field.key);
        compiler.group_field(field);
    }
    compiler.push(b"}");
    compiler.flush();
    compiler.program
}

impl Compiler<'_, '_> {
    fn group_field(&mut self, field: &AggregateField) {
        match &field.output {
            AggregateOutput::Typename(name) => {
                json_string(name.as_bytes(), &mut self.program.literals);
            }
            AggregateOutput::Count => {
                self.program.expressions.push(Expression::Count);
                self.computed(&field.key, OutputForm::Count, None);
            }
            AggregateOutput::Group(column, parts) => {
                let form = if parts.is_empty() {
                    self.form(*column)
                } else {
                    OutputForm::Parts(parts.clone().into())
                };
                let relation = &self.schema[self.program.tables[0]];
                self.program.expressions.push(Expression::Column {
                    table: 0,
                    column: *column,
                    cast: projection::cast(relation, *column),
                });
                self.computed(&field.key, form, None);
            }
            AggregateOutput::Function(function, members) => {
                self.push(b"{");
                for (at, (key, member)) in members.iter().enumerate() {
                    if at > 0 {
                        self.push(b",");
                    }
                    self.key(key);
                    match member {
                        AggregateColumn::Typename(name) => {
                            json_string(name.as_bytes(), &mut self.program.literals);
                        }
                        AggregateColumn::Column(column) => {
                            self.function(*function, *column, &field.key, key);
                        }
                    }
                }
                self.push(b"}");
            }
        }
    }

    fn function(
        &mut self,
        function: AggregateFunction,
        column: ColumnId,
        within: &Arc<str>,
        key: &Arc<str>,
    ) {
        let relation = &self.schema[self.program.tables[0]];
        let (cast, form) = match function {
            AggregateFunction::Min | AggregateFunction::Max => {
                (projection::cast(relation, column), self.form(column))
            }
            AggregateFunction::Sum | AggregateFunction::Avg => (Cast::None, OutputForm::Value),
        };
        self.program.expressions.push(Expression::Function {
            function,
            column,
            cast,
        });
        self.computed(key, form, Some(within));
    }

    fn form(&self, column: ColumnId) -> OutputForm {
        if self.schema[self.program.tables[0]].is_key(column) {
            OutputForm::Id
        } else {
            OutputForm::Value
        }
    }

    fn computed(&mut self, key: &Arc<str>, form: OutputForm, within: Option<&Arc<str>>) {
        let text = self.text();
        self.program.ops.push(Op::Value {
            text,
            within: within.cloned(),
            key: key.clone(),
            not_null: false,
            form,
        });
    }
}
