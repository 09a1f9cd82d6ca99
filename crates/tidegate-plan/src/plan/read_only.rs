//! Determines whether reading rows can run a function of the database's users. Such a function
//! could write.

use tidegate_catalog::RelationId;
use tidegate_catalog::model::{Relation, RelationKind};
use tidegate_filter::Filter;

use super::level::{Level, Settings};

/// Whether a level reads only relations for which [`stores_rows`] is true.
pub(super) fn is(settings: &Settings<'_>, level: &Level<'_>) -> bool {
    let mut tables = level.rows.program.tables.iter();
    tables.all(|table| stores_rows(settings.schema.relation(*table)))
        && level
            .filter()
            .is_none_or(|filter| passes(settings, level.relation, filter))
}

/// Whether a condition on a relation reads only relations for which [`stores_rows`] is true.
fn passes(settings: &Settings<'_>, relation: RelationId, filter: &Filter) -> bool {
    match filter {
        Filter::All(filters) | Filter::Any(filters) => {
            let mut filters = filters.iter();
            filters.all(|filter| passes(settings, relation, filter))
        }
        Filter::Not(filter) => passes(settings, relation, filter),
        Filter::Exists(relationship, filter) => {
            let relation = settings.schema.relation(relation);
            let target = relation.relationship(*relationship).target;
            stores_rows(settings.schema.relation(target)) && passes(settings, target, filter)
        }
        Filter::Compare(_) => true,
    }
}

/// Whether a relation stores its rows, and reading them cannot run code that writes. Views and
/// foreign tables do not store rows. Policies of a table may call functions that can write.
fn stores_rows(relation: &Relation) -> bool {
    let stored = matches!(
        relation.kind,
        RelationKind::Table | RelationKind::Partitioned | RelationKind::MaterializedView
    );
    stored && (!relation.row_security || relation.plain_policies)
}
