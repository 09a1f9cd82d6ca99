//! Statements that Tidegate writes itself.

use std::sync::Arc;

use tidegate_values::Parameter;

use super::{BoundStatement, Kind, Statement, Trust};

/// Writes a statement with three verbs: syntax, identifier, parameter. There is no fourth, so a
/// value cannot enter the text, and names are quoted here and nowhere else.
///
/// Equal shapes give equal texts, which is what prepared statements are found by.
#[derive(Clone, Debug, Default)]
pub struct SqlWriter {
    text: String,
    values: Vec<Parameter>,
    places: Vec<Arc<str>>,
}

impl SqlWriter {
    /// An empty statement.
    pub fn new() -> Self {
        Self {
            text: String::with_capacity(512),
            values: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Appends text of our own: keywords, operators, punctuation.
    pub fn syntax(&mut self, text: &'static str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Appends a name, quoted (PostgreSQL, "Identifiers and Key Words").
    pub fn identifier(&mut self, name: &str) -> &mut Self {
        self.text.push('"');
        // Nearly no name holds a quote, and most are too short to be searched for one.
        if name.bytes().any(|byte| byte == b'"') {
            self.text.push_str(&name.replace('"', "\"\""));
        } else {
            self.text.push_str(name);
        }
        self.text.push('"');
        self
    }

    /// Appends a name of our own with a number, such as the alias of a level: `t3`.
    pub fn numbered(&mut self, name: &'static str, number: usize) -> &mut Self {
        self.text.push_str(name);
        let mut digits = itoa::Buffer::new();
        self.text.push_str(digits.format(number));
        self
    }

    /// Appends `$n` and keeps its value.
    pub fn parameter(&mut self, value: Parameter) -> &mut Self {
        self.values.push(value);
        let number = self.values.len();
        self.repeated(number)
    }

    /// Appends `$n`, keeps its value, and where the value stands in the request, such as
    /// `where.price.gt`: errors of the value name that place.
    pub fn placed(&mut self, value: Parameter, place: impl Into<Arc<str>>) -> &mut Self {
        self.places.resize_with(self.values.len(), Arc::default);
        self.places.push(place.into());
        self.parameter(value)
    }

    /// Appends `$n` for a value that has been given before, n from 1.
    pub fn repeated(&mut self, number: usize) -> &mut Self {
        self.numbered("$", number)
    }

    /// How many parameters there are so far.
    pub fn parameters(&self) -> usize {
        self.values.len()
    }

    /// Ends the statement. What only reads and calls built-in functions leaves nothing behind in
    /// its session.
    pub fn finish(self, kind: Kind) -> BoundStatement {
        let trust = match kind {
            Kind::Read => Trust::Stateless,
            Kind::Write | Kind::Procedural | Kind::Other => Trust::Stateful,
        };
        let statement = Statement {
            text: self.text,
            placeholders: Vec::new(),
            shifts: Vec::new(),
            kind,
            trust,
            plain: true,
            calls: false,
            refused_for_shared: None,
        };
        BoundStatement {
            statement: Arc::new(statement),
            hints: Vec::new(),
            formats: Vec::new(),
            sets: vec![self.values],
            listed: false,
            places: self.places,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_values_are_parameters() {
        let mut sql = SqlWriter::new();
        sql.syntax("select ")
            .identifier("a\"b; drop")
            .syntax(" from t where x = ")
            .parameter(Parameter::Text("'; drop table t".into()));
        let bound = sql.finish(Kind::Read);
        assert_eq!(
            bound.statement.text(),
            "select \"a\"\"b; drop\" from t where x = $1"
        );
        assert_eq!(bound.sets, [[Parameter::Text("'; drop table t".into())]]);
        assert_eq!(bound.trust(), Trust::Stateless);
    }

    #[test]
    fn values_know_their_place_where_one_was_given() {
        let mut sql = SqlWriter::new();
        sql.parameter(Parameter::Null)
            .placed(Parameter::Null, "where.price.gt")
            .syntax(" and ")
            .repeated(1)
            .parameter(Parameter::Null);
        let bound = sql.finish(Kind::Read);
        assert_eq!(bound.statement.text(), "$1$2 and $1$3");
        assert_eq!(bound.place(0, 1), "where.price.gt");
        assert_eq!(
            (bound.place(0, 0), bound.place(0, 2)),
            ("params.".to_owned(), "params.".to_owned())
        );
        assert_eq!(
            bound.statement.caller_message("there is no $1"),
            "there is no $1"
        );
    }
}
