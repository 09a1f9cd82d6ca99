//! Resolves the types of a document.

use std::collections::HashMap;

use tidegate_values::{Type, TypeField, TypeKind};

use super::{TypeEntry, TypeEntryKind, TypeName};
use crate::error::{Error, Result};
use crate::model::Comparisons;

/// The deepest nesting of types that is resolved. Types of real databases are nested less deeply. A
/// type that is nested more deeply counts as a simple type.
const DEEPEST: usize = 32;
/// The first OID that is not reserved for built-in types (PostgreSQL, "System Catalog Initial
/// Data").
const BUILT_IN: u32 = 12_000;

/// The built-in types that `min` and `max` accept in every version (PostgreSQL, "Aggregate
/// Functions"). They are used if the document does not list the type.
const TYPES_WITH_MIN_MAX: [Type; 21] = [
    Type::INT2,
    Type::INT4,
    Type::INT8,
    Type::FLOAT4,
    Type::FLOAT8,
    Type::NUMERIC,
    Type::TEXT,
    Type::VARCHAR,
    Type::BPCHAR,
    Type::DATE,
    Type::TIME,
    Type::TIMETZ,
    Type::TIMESTAMP,
    Type::TIMESTAMPTZ,
    Type::INTERVAL,
    Type::MONEY,
    Type::INET,
    Type::CIDR,
    Type::OID,
    Type::PG_LSN,
    Type::TID,
];

/// The types of a document, by their OIDs and names.
pub(crate) struct TypeTree<'a> {
    entries: HashMap<u32, &'a TypeEntry>,
    built: HashMap<u32, Type>,
    names: HashMap<Box<str>, u32>,
}

impl<'a> TypeTree<'a> {
    pub(super) fn new(entries: &'a [TypeEntry]) -> Self {
        let names = entries.iter().map(|entry| (entry.name.clone(), entry.oid));
        Self {
            entries: entries.iter().map(|entry| (entry.oid, entry)).collect(),
            built: HashMap::new(),
            names: names.collect(),
        }
    }

    /// Resolves a type together with the types that it consists of.
    pub(super) fn resolve(&mut self, name: &TypeName) -> Result<Type> {
        let oid = self.number(name)?;
        self.build(oid, 0)
    }

    /// Whether `is` returns true for a domain, or for one of the domains on which it is based.
    /// Returns `false` for a type that is not a domain.
    pub(super) fn is_domain(&mut self, name: &TypeName, is: fn(&TypeEntry) -> bool) -> bool {
        self.of_domain(name, |domain| is(domain).then_some(()))
            .is_some()
    }

    /// The type modifier of a domain, or else of the nearest domain on which it is based. `None` if
    /// there is none, or if the type is not a domain.
    pub(super) fn modifier(&mut self, name: &TypeName) -> Option<i32> {
        self.of_domain(name, |domain| domain.modifier)
    }

    /// Whether `min` and `max` accept the type. For a domain, the base type decides.
    pub(super) fn has_min_max(&mut self, name: &TypeName) -> bool {
        let mut next = self.number(name).ok();
        for _ in 0..DEEPEST {
            let Some(entry) = next.and_then(|oid| self.entries.get(&oid).copied()) else {
                let built_in = next.and_then(Type::from_oid);
                return built_in.is_some_and(|built_in| TYPES_WITH_MIN_MAX.contains(&built_in));
            };
            if !matches!(entry.kind, TypeEntryKind::Domain) {
                return entry.has_min_max;
            }
            let inner = entry.inner.as_ref();
            next = inner.and_then(|inner| self.number(inner).ok());
        }
        false
    }

    /// The comparisons of a type and of the types that it consists of, as far as the document has
    /// them.
    pub(super) fn comparisons(&self, r#type: &Type) -> Box<[Comparisons]> {
        let mut found = Vec::new();
        self.add_comparisons(r#type, &mut found);
        found.into()
    }

    fn add_comparisons(&self, r#type: &Type, found: &mut Vec<Comparisons>) {
        match r#type.kind() {
            TypeKind::Domain(inner) | TypeKind::Array(inner) => self.add_comparisons(inner, found),
            TypeKind::Composite(fields) => fields
                .iter()
                .for_each(|field| self.add_comparisons(field.type_(), found)),
            _ => {
                let entry = self.entries.get(&r#type.oid());
                let reported = entry.and_then(|entry| entry.comparisons.as_ref());
                let known = found.iter().any(|known| known.r#type == r#type.oid());
                if let (Some(reported), false) = (reported, known) {
                    found.push(Comparisons {
                        r#type: r#type.oid(),
                        operators: reported.operators.clone(),
                        sorts: reported.sorts,
                        groups: reported.groups,
                    });
                }
            }
        }
    }

    /// Calls `get` for a domain, then for its base type if that is a domain too, and so on. Returns
    /// the first result that is not `None`. Returns `None` for a type that is not a domain.
    fn of_domain<T>(
        &mut self,
        name: &TypeName,
        get: impl Fn(&TypeEntry) -> Option<T>,
    ) -> Option<T> {
        let mut next = self.number(name).ok();
        for _ in 0..DEEPEST {
            let entry = next.and_then(|oid| self.entries.get(&oid).copied())?;
            if !matches!(entry.kind, TypeEntryKind::Domain) {
                return None;
            }
            if let Some(reported) = get(entry) {
                return Some(reported);
            }
            let inner = entry.inner.as_ref();
            next = inner.and_then(|inner| self.number(inner).ok());
        }
        None
    }

    fn number(&mut self, name: &TypeName) -> Result<u32> {
        let name = match name {
            TypeName::Number(oid) => return Ok(*oid),
            TypeName::Name(name) => name,
        };
        if let Some(oid) = self.names.get(name) {
            return Ok(*oid);
        }
        let element = name.strip_suffix("[]");
        let type_name = element.map_or_else(|| name.to_string(), |element| format!("_{element}"));
        let found = (1..BUILT_IN)
            .filter_map(Type::from_oid)
            .find(|known| known.name() == type_name)
            .map(|known| known.oid())
            .or_else(|| self.names.get(&*type_name).copied())
            .ok_or_else(|| Error::Malformed(format!("`{name}` is no type of the document")))?;
        self.names.insert(name.clone(), found);
        Ok(found)
    }

    fn build(&mut self, oid: u32, depth: usize) -> Result<Type> {
        if let Some(known) = Type::from_oid(oid).or_else(|| self.built.get(&oid).cloned()) {
            return Ok(known);
        }
        let entry = *self
            .entries
            .get(&oid)
            .ok_or_else(|| Error::Malformed(format!("the type {oid} is missing in `types`")))?;
        let kind = self.kind(entry, depth)?;
        let built = Type::new(entry.name.to_string(), oid, kind, entry.schema.to_string());
        self.built.insert(oid, built.clone());
        Ok(built)
    }

    fn kind(&mut self, entry: &TypeEntry, depth: usize) -> Result<TypeKind> {
        if depth > DEEPEST {
            return Ok(TypeKind::Simple);
        }
        Ok(match entry.kind {
            TypeEntryKind::Simple => TypeKind::Simple,
            TypeEntryKind::Pseudo => TypeKind::Pseudo,
            TypeEntryKind::Enum => TypeKind::Enum(entry.labels.clone()),
            TypeEntryKind::Array => TypeKind::Array(self.inner(entry, depth)?),
            TypeEntryKind::Range => TypeKind::Range(self.inner(entry, depth)?),
            TypeEntryKind::Multirange => TypeKind::Multirange(self.inner(entry, depth)?),
            TypeEntryKind::Domain => TypeKind::Domain(self.inner(entry, depth)?),
            TypeEntryKind::Composite => {
                let attributes = entry.attributes.iter().map(|attribute| {
                    let oid = self.number(&attribute.r#type)?;
                    let r#type = self.build(oid, depth + 1)?;
                    Ok(TypeField::new(attribute.name.to_string(), r#type))
                });
                TypeKind::Composite(attributes.collect::<Result<_>>()?)
            }
        })
    }

    fn inner(&mut self, entry: &TypeEntry, depth: usize) -> Result<Type> {
        let missing = || Error::Malformed(format!("the type `{}` lacks `inner`", entry.name));
        let oid = self.number(entry.inner.as_ref().ok_or_else(missing)?)?;
        self.build(oid, depth + 1)
    }
}
