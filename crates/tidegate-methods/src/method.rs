//! A stored method that is ready to be called.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};
use tidegate_sql::{BoundStatement, InputError, Params, Statement};
use tidegate_values::OutputFormat;

use crate::definition::Definition;
use crate::json;
use crate::name::MethodName;
use crate::signature::{Signature, SignatureField};

/// A method as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The definition of the method.
    pub definition: Definition,
    /// The name of the user who defined the method.
    pub creator: String,
    /// Whether the tenant's owner wrote `q`, and no other user has changed the type hints since. If
    /// so, the statement may run on shared connections of the tenant.
    pub by_owner: bool,
    /// The types that the most recent dry run inferred. `None` before the first dry run, and after
    /// a change of `q` or a type hint.
    pub signature: Option<Signature>,
    /// The version of the method. Every write changes it, except a write of the signature.
    pub version: u64,
}

/// The name and the version of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// The name of the method.
    pub name: MethodName,
    /// The version of the method.
    pub version: u64,
}

/// A method with its parsed statement.
#[derive(Debug)]
pub struct Method {
    record: Record,
    statement: Result<Arc<Statement>, InputError>,
}

impl Method {
    /// Parses the statement of a stored method.
    pub fn new(record: Record) -> Self {
        let statement = record.definition.statement().map(Arc::new);
        Self { record, statement }
    }

    /// The method as stored.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The name of the method.
    pub fn name(&self) -> &MethodName {
        &self.record.definition.name
    }

    /// The definition of the method.
    pub fn definition(&self) -> &Definition {
        &self.record.definition
    }

    /// The types that the most recent dry run inferred; `None` before the first dry run, and after
    /// a change of `q` or a type hint.
    pub fn signature(&self) -> Option<&Signature> {
        self.record.signature.as_ref()
    }

    /// The format of the method's result; JSON by default.
    pub fn output_format(&self) -> OutputFormat {
        self.record.definition.output_format.unwrap_or_default()
    }

    /// The name and version, by which a store recognises an unchanged method.
    pub fn versioned(&self) -> Versioned {
        Versioned {
            name: self.name().clone(),
            version: self.record.version,
        }
    }

    /// The parsed statement of the method.
    ///
    /// # Errors
    ///
    /// The error of [`Statement::parse`]. It occurs if an earlier release of Tidegate accepted the
    /// statement and this release does not.
    pub fn statement(&self) -> Result<&Arc<Statement>, InputError> {
        self.statement.as_ref().map_err(Clone::clone)
    }

    /// Binds the values of a call with the method's hints and formats.
    ///
    /// # Errors
    ///
    /// As [`Statement::bind`] and [`Method::statement`].
    pub fn bind(&self, params: &Params<'_>) -> Result<BoundStatement, InputError> {
        let definition = &self.record.definition;
        let (hints, formats) = (&definition.type_hints, &definition.type_formats);
        self.statement()?.bind(params, hints, formats)
    }

    /// The statement with the method's hints and without parameter sets, for a dry run.
    ///
    /// # Errors
    ///
    /// As [`Method::statement`].
    pub fn without_values(&self) -> Result<BoundStatement, InputError> {
        self.bind(&Params::Many(Vec::new()))
    }

    /// The JSON object of the method. Its members are `q`, `method`, `type_hints`, `type_formats`,
    /// `output_format`, `input_schema` and `output_schema`, in this order. A member without a value
    /// is null.
    pub fn to_json(&self) -> String {
        json::write(&MethodJson(self))
    }
}

/// The JSON objects of several methods as an array, in the given order.
pub fn to_json_array(methods: &[Arc<Method>]) -> String {
    let shown: Vec<_> = methods.iter().map(|method| MethodJson(method)).collect();
    json::write(&shown)
}

struct MethodJson<'a>(&'a Method);

impl Serialize for MethodJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let definition = self.0.definition();
        let signature = self.0.signature();
        let mut object = serializer.serialize_struct("Method", 7)?;
        object.serialize_field("q", &definition.q)?;
        object.serialize_field("method", definition.name.as_str())?;
        object.serialize_field("type_hints", &texts(&definition.type_hints))?;
        object.serialize_field("type_formats", &texts(&definition.type_formats))?;
        object.serialize_field("output_format", &definition.output_format_name())?;
        object.serialize_field(
            "input_schema",
            &signature.map(|s| FieldsJson(&s.parameters)),
        )?;
        object.serialize_field("output_schema", &signature.map(|s| FieldsJson(&s.columns)))?;
        object.end()
    }
}

fn texts(texts: &[(String, String)]) -> Option<StringMapJson<'_>> {
    (!texts.is_empty()).then_some(StringMapJson(texts))
}

struct StringMapJson<'a>(&'a [(String, String)]);

impl Serialize for StringMapJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, text)| (name, text)))
    }
}

struct FieldsJson<'a>(&'a [SignatureField]);

impl Serialize for FieldsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.0.len()))?;
        for field in self.0 {
            object.serialize_entry(&field.name, &FieldJson(field))?;
        }
        object.end()
    }
}

struct FieldJson<'a>(&'a SignatureField);

impl Serialize for FieldJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("SignatureField", 3)?;
        object.serialize_field("type", &self.0.r#type)?;
        object.serialize_field("array", &self.0.array)?;
        object.serialize_field("nullable", &self.0.nullable)?;
        object.end()
    }
}
