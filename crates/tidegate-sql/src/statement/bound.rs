//! A statement with its values.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use tidegate_values::datetime::Zone;
use tidegate_values::{InputFormat, Parameter};

use super::params::{ParameterSet, Params};
use super::{Purity, Statement, builtins};
use crate::error::InputError;

/// If there are more placeholders than this, they are looked up by hash.
const MANY_NAMES: usize = 16;

/// A statement with the values of its placeholders, as an executor runs it.
///
/// The values are not encoded yet: a value of a caller is still JSON as the caller sent it. The
/// executor encodes the values by [`tidegate_values::parameter::encode`] once PostgreSQL has
/// reported the parameter types.
#[derive(Clone, Debug)]
pub struct BoundStatement {
    /// The statement.
    pub statement: Arc<Statement>,
    /// The type hint of each placeholder, in the order of [`Statement::placeholders`]. The list is
    /// empty for a statement that Tidegate generated.
    pub hints: Vec<Option<TypeHint>>,
    /// The input format of each placeholder, in the order of [`Statement::placeholders`]. The list
    /// is empty for a statement that Tidegate generated.
    pub formats: Vec<Option<InputFormat>>,
    /// The parameter sets; none if the statement is only described. Each has one value for each
    /// placeholder, in the order of [`Statement::placeholders`].
    pub sets: Vec<Vec<Parameter>>,
    /// Whether the request had an array of parameter sets. If so, errors name a set `params[i]`,
    /// and otherwise `params`.
    pub listed: bool,
    /// For each placeholder, the path of its value in the request, for values that are not members
    /// of `params`. An empty text means that the path is unknown. The list is empty if no paths are
    /// known.
    pub places: Vec<Arc<str>>,
}

/// The name of a PostgreSQL type as a caller writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypeHint(pub String);

impl Statement {
    /// Binds values to the placeholders. Each placeholder must have a value, and each value must
    /// belong to a placeholder.
    ///
    /// `type_hints` and `type_formats` are `(name, value)` pairs. An entry whose name is not a
    /// placeholder is about a column of the result and is ignored here.
    ///
    /// # Errors
    ///
    /// [`InputError::MissingParameter`] and [`InputError::ExtraParameter`], with the parameter set
    /// and the placeholder.
    pub fn bind(
        self: &Arc<Self>,
        params: &Params<'_>,
        type_hints: &[(impl AsRef<str>, impl AsRef<str>)],
        type_formats: &[(impl AsRef<str>, impl AsRef<str>)],
    ) -> Result<BoundStatement, InputError> {
        let index = Index::new(&self.placeholders);
        let (sets, listed) = match params {
            Params::One(set) => (vec![index.bind(set, || place(None))?], false),
            Params::Many(sets) => {
                let sets = sets.iter().enumerate();
                let bound = sets.map(|(number, set)| index.bind(set, || place(Some(number))));
                (bound.collect::<Result<_, _>>()?, true)
            }
        };
        let hints = index.assign(type_hints, |hint| TypeHint(hint.to_owned()));
        let formats = index.assign(type_formats, |specifiers| InputFormat {
            specifiers: specifiers.to_owned(),
            zone: Zone::default(),
        });
        Ok(BoundStatement {
            statement: Arc::clone(self),
            hints,
            formats,
            sets,
            listed,
            places: Vec::new(),
        })
    }
}

impl BoundStatement {
    /// Binds a statement that has no placeholders. The statement runs once.
    ///
    /// # Errors
    ///
    /// [`InputError::MissingParameter`] if the statement has placeholders.
    pub fn without_values(statement: &Arc<Statement>) -> Result<Self, InputError> {
        const NONE: &[(&str, &str)] = &[];
        statement.bind(&Params::default(), NONE, NONE)
    }

    /// Binds one value to each placeholder, in the order of [`Statement::placeholders`]. The
    /// statement runs once.
    pub fn with_values(statement: Arc<Statement>, values: Vec<Parameter>) -> Self {
        Self {
            statement,
            hints: vec![None; values.len()],
            formats: vec![None; values.len()],
            sets: vec![values],
            listed: false,
            places: Vec::new(),
        }
    }

    /// Sets the time zone of values that have an input format and name no time zone. The default is
    /// UTC.
    pub fn in_zone(mut self, zone: &Zone) -> Self {
        for format in self.formats.iter_mut().flatten() {
            format.zone = zone.clone();
        }
        self
    }

    /// The name of a value in errors: its path in the request if that is known, else `params.name`,
    /// or `params[set].name` for an array.
    pub fn place(&self, set: usize, placeholder: usize) -> String {
        if let Some(place) = self
            .places
            .get(placeholder)
            .filter(|place| !place.is_empty())
        {
            return place.to_string();
        }
        let name = self
            .statement
            .placeholders
            .get(placeholder)
            .map_or("", String::as_str);
        format!("{}.{name}", place(self.listed.then_some(set)))
    }

    /// Determines whether the statement may leave session state when it runs with its type hints. A
    /// hint that names a user-defined type makes this possible: the type may be a domain, whose
    /// check constraint can call any function.
    pub fn purity(&self) -> Purity {
        let built_in = |hint: &Option<TypeHint>| match hint {
            Some(TypeHint(name)) => builtins::is_built_in_type_name(name),
            None => true,
        };
        match self.statement.purity {
            Purity::Stateless if self.hints.iter().all(built_in) => Purity::Stateless,
            _ => Purity::Stateful,
        }
    }
}

fn place(set: Option<usize>) -> String {
    set.map_or_else(|| "params".to_owned(), |number| format!("params[{number}]"))
}

/// An index of placeholders by name.
struct Index<'a> {
    names: &'a [String],
    hashed: HashMap<&'a str, usize>,
}

impl<'a> Index<'a> {
    fn new(names: &'a [String]) -> Self {
        let mut hashed = HashMap::new();
        if names.len() > MANY_NAMES {
            hashed.extend(
                names
                    .iter()
                    .enumerate()
                    .map(|(index, name)| (name.as_str(), index)),
            );
        }
        Self { names, hashed }
    }

    /// The index of the placeholder with this name; `None` if there is none. The index `guess` is
    /// tried first, because parameter sets mostly have the order of the placeholders.
    fn find(&self, name: &str, guess: usize) -> Option<usize> {
        if self.names.get(guess).is_some_and(|known| known == name) {
            return Some(guess);
        }
        if self.hashed.is_empty() {
            return self.names.iter().position(|known| known == name);
        }
        self.hashed.get(name).copied()
    }

    fn bind(
        &self,
        set: &ParameterSet<'_>,
        place: impl Fn() -> String,
    ) -> Result<Vec<Parameter>, InputError> {
        let mut values: Vec<Option<Parameter>> = vec![None; self.names.len()];
        for (guess, (name, raw)) in set.iter().enumerate() {
            let index = self
                .find(name, guess)
                .ok_or_else(|| InputError::ExtraParameter {
                    place: place(),
                    name: name.clone().into_owned(),
                })?;
            values[index] = Some(parameter(raw));
        }
        let named = values.into_iter().zip(self.names);
        named
            .map(|(value, name)| {
                value.ok_or_else(|| InputError::MissingParameter {
                    place: place(),
                    name: name.clone(),
                })
            })
            .collect()
    }

    fn assign<T>(
        &self,
        entries: &[(impl AsRef<str>, impl AsRef<str>)],
        read: impl Fn(&str) -> T,
    ) -> Vec<Option<T>> {
        let mut values = Vec::new();
        values.resize_with(self.names.len(), || None);
        for (name, value) in entries {
            if let Some(index) = self.find(name.as_ref(), usize::MAX) {
                values[index] = Some(read(value.as_ref()));
            }
        }
        values
    }
}

fn parameter(raw: &RawValue) -> Parameter {
    match raw.get() {
        "null" => Parameter::Null,
        json => Parameter::Json(json.into()),
    }
}
