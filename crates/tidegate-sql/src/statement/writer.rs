//! Writes the statements that Tidegate generates.

use std::sync::Arc;

use tidegate_values::Parameter;

use super::{BoundStatement, Kind, Purity, Statement};

/// Writes a statement from constant syntax, identifiers and parameters. Nothing else can be
/// appended, so a value cannot enter the text, and names are quoted only here.
///
/// Statements of the same structure have the same text, so that a statement that was prepared for
/// one request can be reused for the next.
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

    /// Appends constant text: keywords, operators, punctuation.
    pub fn syntax(&mut self, text: &'static str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Appends a name, quoted (PostgreSQL, "Identifiers and Key Words").
    pub fn identifier(&mut self, name: &str) -> &mut Self {
        self.text.push('"');
        // Few names contain a quote, and most are too short for `memchr` to be faster.
        if name.bytes().any(|byte| byte == b'"') {
            self.text.push_str(&name.replace('"', "\"\""));
        } else {
            self.text.push_str(name);
        }
        self.text.push('"');
        self
    }

    /// Appends a name with a number, such as the alias `t3`.
    pub fn numbered(&mut self, name: &'static str, number: usize) -> &mut Self {
        self.text.push_str(name);
        let mut digits = itoa::Buffer::new();
        self.text.push_str(digits.format(number));
        self
    }

    /// Appends `$n` and stores its value.
    pub fn parameter(&mut self, value: Parameter) -> &mut Self {
        self.values.push(value);
        let number = self.values.len();
        self.repeated(number)
    }

    /// Appends `$n` and stores its value and the path of the value in the request, such as
    /// `where.price.gt`, for errors.
    pub fn placed(&mut self, value: Parameter, place: impl Into<Arc<str>>) -> &mut Self {
        self.places.resize_with(self.values.len(), Arc::default);
        self.places.push(place.into());
        self.parameter(value)
    }

    /// Appends `$n` for an earlier value; `number` counts from 1.
    pub fn repeated(&mut self, number: usize) -> &mut Self {
        self.numbered("$", number)
    }

    /// The number of parameters appended so far.
    pub fn parameters(&self) -> usize {
        self.values.len()
    }

    /// Ends the statement. A read counts as stateless, because the generated reads call only
    /// built-in functions.
    pub fn finish(self, kind: Kind) -> BoundStatement {
        let purity = match kind {
            Kind::Read => Purity::Stateless,
            Kind::Write | Kind::Procedural | Kind::Other => Purity::Stateful,
        };
        let statement = Statement {
            text: self.text,
            placeholders: Vec::new(),
            shifts: Vec::new(),
            kind,
            purity,
            plain: true,
            calls: false,
            calls_claims: false,
            fills_rows: false,
            refused_for_shared: None,
            names_login: false,
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
        assert_eq!(bound.purity(), Purity::Stateless);
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
