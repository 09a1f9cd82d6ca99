//! The schemas loaded for one role, and how they are refreshed after a change.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_sql::{DatabaseName, Executor, RoleName, Terms};

use super::Schemas;
use super::intern::{Digest, Intern};
use crate::document::{Part, Types};
use crate::error::{Error, Result};
use crate::load::{self, SchemaRows};
use crate::model::Schema;

/// Schemas, and the relations that they are made of by their versions.
#[derive(Clone, Default)]
pub(super) struct Loaded {
    pub(super) schemas: Schemas,
    relations: Arc<HashMap<i64, (Digest, Arc<Part>)>>,
}

impl Loaded {
    /// Loads what differs from this: all of it when this is empty. `name` is empty for all schemas;
    /// `is_new` is called with the schemas that no role had before.
    ///
    /// # Errors
    ///
    /// When the statement cannot run, or a document cannot be read.
    pub(super) async fn refresh(
        &self,
        (executor, intern): (&dyn Executor, &Intern),
        (database, role): (&DatabaseName, &RoleName),
        name: &str,
        terms: &Terms,
    ) -> Result<(Self, Vec<Arc<Schema>>)> {
        let name = (!name.is_empty()).then_some(name);
        let known = self.relations.keys().copied();
        let rows = load::relations(executor, (database, role), name, known, terms).await?;
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

    /// The relations of one schema; they are put into `relations` too.
    fn parts(
        &self,
        intern: &Intern,
        database: &DatabaseName,
        rows: SchemaRows,
        relations: &mut HashMap<i64, (Digest, Arc<Part>)>,
    ) -> Result<Vec<(Digest, Arc<Part>)>> {
        let types = Types::parse(&rows.types)?;
        let mut types = types.tree();
        let mut parts = Vec::with_capacity(rows.relations.len());
        for row in rows.relations {
            let part = match row.document {
                None => self.relations.get(&row.version).cloned(),
                Some(document) => {
                    let digest = intern.digest((&document, row.types));
                    let read = || Part::parse(&document, &mut types);
                    Some((digest, intern.part(database, digest, read)?))
                }
            };
            let part = part.ok_or(Error::Document)?;
            relations.insert(row.version, part.clone());
            parts.push(part);
        }
        Ok(parts)
    }
}
