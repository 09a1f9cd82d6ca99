//! Parses the condition text of a subscription: a small subset of the SQL `WHERE` syntax. The text
//! is never sent to PostgreSQL.

mod token;

use tidegate_catalog::{Relation, RelationId, Schema};
use tidegate_values::json::JsonKind;

use self::token::{ConditionToken, ConditionTokenKind, tokens};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::json::{Json, write_string};
use crate::operator::Operator;
use crate::parse::{Compared, ComparedColumn, MAX_CONDITIONS, Path};

/// The deepest nesting of parentheses and `NOT` that is accepted.
const MAX_DEPTH: usize = 64;

impl Filter {
    /// Parses a condition text over the rows of `relation`.
    ///
    /// The text compares a column with a quoted string, a number or a boolean. The operators are
    /// `=`, `<>`, `!=`, `<`, `<=`, `>` and `>=`, and the keywords `IN (…)`, `LIKE`, `ILIKE`,
    /// `BETWEEN` and `IS NULL`, which can be negated (`NOT IN`, `IS NOT NULL`). Comparisons are
    /// combined by `AND`, `OR`, `NOT` and parentheses. Keywords are case-insensitive. An unquoted
    /// column name is looked up as it is, and if there is no such column, in lower case.
    ///
    /// # Errors
    ///
    /// [`Error::Condition`] with the position of the invalid part or value.
    pub fn parse_condition(text: &str, relation: &Relation) -> Result<Self> {
        let mut parser = Parser {
            tokens: tokens(text)?,
            at: 0,
            depth: 0,
            conditions: 0,
            relation,
        };
        let filter = parser.any()?;
        match parser.peek() {
            ConditionTokenKind::End => Ok(filter),
            _ => Err(parser.unexpected("`AND`, `OR` or the end")),
        }
    }

    /// Parses the `where` of a subscription: a JSON object as in [`Filter::parse`], or a JSON
    /// string as in [`Filter::parse_condition`].
    ///
    /// # Errors
    ///
    /// Those of [`Filter::parse`] and [`Filter::parse_condition`].
    pub fn parse_subscription(
        json: &Json<'_>,
        schema: &Schema,
        relation: RelationId,
        place: &str,
    ) -> Result<Self> {
        match json.kind() {
            JsonKind::String => {
                let text = json.string(&place)?;
                Self::parse_condition(&text, schema.relation(relation))
            }
            JsonKind::Null | JsonKind::Object => Self::parse(json, schema, relation, place),
            _ => Err(json.not(&place, "an object, or a condition in a string")),
        }
    }
}

struct Parser<'a> {
    tokens: Vec<ConditionToken>,
    at: usize,
    depth: usize,
    conditions: usize,
    relation: &'a Relation,
}

/// A literal of the condition text, or a list of literals.
struct Literal {
    json: Json<'static>,
    /// The unquoted numbers among the literals.
    numbers: Vec<Json<'static>>,
    position: usize,
}

impl Literal {
    /// Whether the literal is one unquoted number, or a list whose only element is one. PostgreSQL
    /// determines the type of such a number without regard to the column. For a list of several
    /// values, PostgreSQL instead chooses one common type for the values and the column.
    fn is_number(&self) -> bool {
        let alone = match self.json.kind() {
            JsonKind::Array => self.json.elements(&"").is_ok_and(|all| all.len() == 1),
            _ => true,
        };
        alone && !self.numbers.is_empty()
    }
}

impl<'a> Parser<'a> {
    /// Parses conditions with `OR` between them.
    fn any(&mut self) -> Result<Filter> {
        let mut filters = vec![self.all()?];
        while self.takes("or") {
            filters.push(self.all()?);
        }
        Ok(match filters.len() {
            1 => filters.swap_remove(0),
            _ => Filter::Any(filters),
        })
    }

    /// Parses conditions with `AND` between them.
    fn all(&mut self) -> Result<Filter> {
        let mut filters = vec![self.term()?];
        while self.takes("and") {
            filters.push(self.term()?);
        }
        Ok(Filter::all(filters))
    }

    /// Parses a comparison, a negation, or a condition in parentheses.
    fn term(&mut self) -> Result<Filter> {
        if self.takes("not") {
            self.enter()?;
            let inner = self.term()?;
            self.depth -= 1;
            return Ok(Filter::Not(Box::new(inner)));
        }
        if self.symbol("(") {
            self.enter()?;
            let inner = self.any()?;
            self.depth -= 1;
            self.expect(")")?;
            return Ok(inner);
        }
        self.comparison()
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("nested too deeply: at most {MAX_DEPTH} levels")));
        }
        Ok(())
    }

    fn comparison(&mut self) -> Result<Filter> {
        self.conditions += 1;
        if self.conditions > MAX_CONDITIONS {
            return Err(self.error(format!("too many conditions: at most {MAX_CONDITIONS}")));
        }
        if let Some(literal) = self.literal() {
            let operator = self.operator()?;
            let target = self.column()?;
            return compare(&target, mirrored(operator), &literal);
        }
        let target = self.column()?;
        if self.takes("is") {
            let operator = if self.takes("not") {
                Operator::IsNotNull
            } else {
                Operator::IsNull
            };
            let place = place(self.position());
            if !self.takes("null") {
                return Err(self.unexpected("`NULL`"));
            }
            return Ok(target.null(operator, &Path::Root(&place)));
        }
        let negated = self.takes("not");
        let filter = self.word(&target)?;
        match filter {
            Some(filter) if negated => Ok(Filter::Not(Box::new(filter))),
            Some(filter) => Ok(filter),
            None if negated => Err(self.unexpected("`IN`, `LIKE`, `ILIKE` or `BETWEEN`")),
            None => {
                let operator = self.operator()?;
                let literal = self.value()?;
                compare(&target, operator, &literal)
            }
        }
    }

    /// Parses the operator and the operands after a column, if the operator is a keyword such as
    /// `BETWEEN`. `None` if the next token is no such keyword.
    fn word(&mut self, target: &ComparedColumn<'_>) -> Result<Option<Filter>> {
        if self.takes("between") {
            let least = self.value()?;
            if !self.takes("and") {
                return Err(self.unexpected("`AND`"));
            }
            let most = self.value()?;
            return Ok(Some(Filter::All(vec![
                compare(target, Operator::Gte, &least)?,
                compare(target, Operator::Lte, &most)?,
            ])));
        }
        for (word, operator) in [("like", Operator::Like), ("ilike", Operator::ILike)] {
            if self.takes(word) {
                let pattern = self.value()?;
                return compare(target, operator, &pattern).map(Some);
            }
        }
        if self.takes("in") {
            let list = self.list()?;
            return compare(target, Operator::In, &list).map(Some);
        }
        Ok(None)
    }

    /// Parses a list of values in parentheses. The list may contain NULL.
    fn list(&mut self) -> Result<Literal> {
        let position = self.position();
        self.expect("(")?;
        let (mut values, mut numbers) = (Vec::new(), Vec::new());
        loop {
            if self.takes("null") {
                values.push(Json::NULL);
            } else {
                let mut value = self.value()?;
                numbers.append(&mut value.numbers);
                values.push(value.json);
            }
            if !self.symbol(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(Literal {
            json: Json::List(values),
            numbers,
            position,
        })
    }

    fn operator(&mut self) -> Result<Operator> {
        let operator = match self.peek() {
            ConditionTokenKind::Symbol("=") => Operator::Eq,
            ConditionTokenKind::Symbol("<>" | "!=") => Operator::Neq,
            ConditionTokenKind::Symbol("<") => Operator::Lt,
            ConditionTokenKind::Symbol("<=") => Operator::Lte,
            ConditionTokenKind::Symbol(">") => Operator::Gt,
            ConditionTokenKind::Symbol(">=") => Operator::Gte,
            _ => return Err(self.unexpected("a comparison")),
        };
        self.at += 1;
        Ok(operator)
    }

    /// Parses the name of a column. An unquoted name is first looked up in its own letter case. If
    /// there is no such column, it is looked up in lower case.
    fn column(&mut self) -> Result<ComparedColumn<'a>> {
        let id = match self.peek() {
            ConditionTokenKind::Name(name) => self.relation.find_column(name),
            ConditionTokenKind::Word(word) => self
                .relation
                .find_column(word)
                .or_else(|| self.relation.find_column(&word.to_lowercase())),
            _ => return Err(self.unexpected("a column")),
        };
        let id = id.ok_or_else(|| {
            self.error(format!(
                "{} is not a column of `{}`",
                self.peek(),
                self.relation.name
            ))
        })?;
        self.at += 1;
        Ok(ComparedColumn::of(self.relation, id))
    }

    fn value(&mut self) -> Result<Literal> {
        if self.peek().is("null") {
            return Err(
                self.error("a comparison with NULL is never true: write IS NULL".to_owned())
            );
        }
        self.literal()
            .ok_or_else(|| self.unexpected("a text in single quotes, a number, TRUE or FALSE"))
    }

    /// Parses a literal; `None` if the next token is not a literal. A column named `true` or
    /// `false` must be quoted, because the unquoted word is a literal.
    fn literal(&mut self) -> Option<Literal> {
        let (json, is_number) = match self.peek() {
            ConditionTokenKind::Text(text) => (string(text), false),
            ConditionTokenKind::Number(number) if is_json(number) => {
                (Json::from(number.clone()), true)
            }
            ConditionTokenKind::Number(number) => (string(number), true),
            kind if kind.is("true") => (Json::from("true"), false),
            kind if kind.is("false") => (Json::from("false"), false),
            _ => return None,
        };
        let numbers = is_number.then(|| json.clone()).into_iter().collect();
        let position = self.position();
        self.at += 1;
        Some(Literal {
            json,
            numbers,
            position,
        })
    }

    fn peek(&self) -> &ConditionTokenKind {
        self.tokens
            .get(self.at)
            .map_or(&ConditionTokenKind::End, |token| &token.kind)
    }

    fn position(&self) -> usize {
        let token = self.tokens.get(self.at).or(self.tokens.last());
        token.map_or(1, |token| token.position)
    }

    /// Consumes the next token if it is this keyword; returns whether it is.
    fn takes(&mut self, keyword: &str) -> bool {
        let found = self.peek().is(keyword);
        self.at += usize::from(found);
        found
    }

    /// Consumes the next token if it is this symbol; returns whether it is.
    fn symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), ConditionTokenKind::Symbol(next) if *next == symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.symbol(symbol) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{symbol}`")))
    }

    fn unexpected(&self, expected: &str) -> Error {
        self.error(format!("{}, expected {expected}", self.peek()))
    }

    fn error(&self, problem: String) -> Error {
        Error::Condition {
            position: self.position(),
            problem,
        }
    }
}

/// The path of a value at this position of the text, for errors that are found after parsing.
fn place(position: usize) -> String {
    format!("where at character {position}")
}

fn compare(target: &ComparedColumn<'_>, operator: Operator, literal: &Literal) -> Result<Filter> {
    let place = place(literal.position);
    let path = &Path::Root(&place);
    let is_number = match target.compared() {
        Compared::Real => literal.is_number(),
        // If a number is not a value of the column's type, PostgreSQL compares both the column and
        // the number as `numeric`.
        Compared::Integer => {
            let fits = |number| target.compare(Operator::Eq, number, path).is_ok();
            !literal.numbers.iter().all(fits)
        }
        Compared::Other => false,
    };
    let compared = if is_number {
        target.compare_number(operator, &literal.json, path)
    } else {
        target.compare(operator, &literal.json, path)
    };
    compared.map_err(|error| Error::Condition {
        position: literal.position,
        problem: error.without_place(),
    })
}

/// The operator that gives the same result with swapped operands.
fn mirrored(operator: Operator) -> Operator {
    match operator {
        Operator::Gt => Operator::Lt,
        Operator::Gte => Operator::Lte,
        Operator::Lt => Operator::Gt,
        Operator::Lte => Operator::Gte,
        other => other,
    }
}

fn is_json(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let whole = digits.split(['.', 'e', 'E']).next().unwrap_or_default();
    let fits = whole == "0" || whole.starts_with(|c: char| matches!(c, '1'..='9'));
    fits && !digits.ends_with('.') && !digits.contains(".e") && !digits.contains(".E")
}

fn string(text: &str) -> Json<'static> {
    let mut json = String::with_capacity(text.len() + 2);
    write_string(text, &mut json);
    Json::from(json)
}
