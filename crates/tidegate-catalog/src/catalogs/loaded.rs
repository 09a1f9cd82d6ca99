//! The schemas that were loaded for one role, and their refresh.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_sql::{DatabaseName, Executor, QueryOptions, RoleName};

use super::Schemas;
use super::intern::{Digest, Intern};
use crate::document::{RelationDocument, Types};
use crate::error::{Error, Result};
use crate::load::{self, SchemaRows};
use crate::model::Schema;

/// The loaded schemas, and their relations by version (`RelationRow::version`).
#[derive(Clone, Default)]
pub(super) struct Loaded {
    pub(super) schemas: Schemas,
    relations: Arc<HashMap<i64, (Digest, Arc<RelationDocument>)>>,
}

impl Loaded {
    /// Loads the schema `name`, or all schemas if `name` is empty. The document of a relation is
    /// not read again if `self` has the same version of the relation. Also returns the schemas that
    /// were not interned yet.
    ///
    /// # Errors
    ///
    /// If the statement fails, or a document cannot be parsed.
    pub(super) async fn refresh(
        &self,
        (executor, intern): (&dyn Executor, &Intern),
        (database, role): (&DatabaseName, &RoleName),
        name: &str,
        options: &QueryOptions,
    ) -> Result<(Self, Vec<Arc<Schema>>)> {
        let name = (!name.is_empty()).then_some(name);
        let known = self.relations.keys().copied();
        let rows = load::relations(executor, (database, role), name, known, options).await?;
        let (mut relations, mut schemas, mut new) = (HashMap::new(), Vec::new(), Vec::new());
        for (name, rows) in rows {
            let mut parts = self.parts(intern, database, rows, &mut relations)?;
            parts.sort_by(|(_, one), (_, other)| one.name().cmp(other.name()));
            let (schema, is_new) = intern.schema(database, &name, &parts)?;
            if is_new {
                new.push(Arc::clone(&schema));
            }
            schemas.push(schema);
        }
        let loaded = Self {
            schemas: schemas.into(),
            relations: Arc::new(relations),
        };
        Ok((loaded, new))
    }

    /// Returns the relations of one schema, and adds them to `relations`. A relation whose row has
    /// a document is parsed. Any other relation is unchanged and is taken from `self`.
    fn parts(
        &self,
        intern: &Intern,
        database: &DatabaseName,
        rows: SchemaRows,
        relations: &mut HashMap<i64, (Digest, Arc<RelationDocument>)>,
    ) -> Result<Vec<(Digest, Arc<RelationDocument>)>> {
        let types = Types::parse(&rows.types)?;
        let mut types = types.tree();
        let mut parts = Vec::with_capacity(rows.relations.len());
        for row in rows.relations {
            let part = match row.document {
                None => self.relations.get(&row.version).cloned(),
                Some(document) => {
                    let digest = intern.digest((&document, row.types));
                    let read = || RelationDocument::parse(&document, &mut types);
                    Some((digest, intern.part(database, digest, read)?))
                }
            };
            let part = part.ok_or(Error::UnexpectedResult)?;
            relations.insert(row.version, part.clone());
            parts.push(part);
        }
        Ok(parts)
    }
}
