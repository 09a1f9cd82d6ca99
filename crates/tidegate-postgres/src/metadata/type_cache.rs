//! The cached types of a database: by OID, and by the name that a hint gives.

use std::collections::HashMap;

use tidegate_sql::{BoundStatement, RoleName, TypeHint};
use tidegate_values::Type;
use tokio::time::Instant;

use super::type_loader::{TypeRow, build};
use super::{MetadataCache, VALID_FOR, make_room};

/// The longest type name that is cached, in bytes. It is long enough for an array of a
/// schema-qualified type.
pub(crate) const LONGEST_TYPE_NAME: usize = 160;

impl MetadataCache {
    /// Returns the built-in or cached type for each OID, in the same order, with `None` for unknown
    /// types. Also returns the OIDs of the unknown types without duplicates.
    pub(crate) fn known(&self, oids: &[u32], now: Instant) -> (Vec<Option<Type>>, Vec<u32>) {
        let types = self.types.read();
        let valid = |oid: &u32| {
            let (known, read_at) = types.get(oid)?;
            (now - *read_at <= VALID_FOR).then(|| known.clone())
        };
        let known: Vec<_> = oids
            .iter()
            .map(|oid| Type::from_oid(*oid).or_else(|| valid(oid)))
            .collect();
        let unknown = known.iter().zip(oids).filter(|(known, _)| known.is_none());
        let mut missing: Vec<u32> = unknown.map(|(_, oid)| *oid).collect();
        missing.sort_unstable();
        missing.dedup();
        (known, missing)
    }

    /// Caches types, unless cached data has become invalid since `generation`.
    pub(crate) fn keep_types(
        &self,
        oids: &[u32],
        entries: &HashMap<u32, TypeRow>,
        generation: u64,
    ) {
        let mut types = self.types.write();
        if self.generation() == generation {
            make_room(&mut types);
            let now = Instant::now();
            types.extend(
                oids.iter()
                    .map(|oid| (*oid, (build(*oid, entries, 0), now))),
            );
        }
    }

    pub(crate) fn hint(&self, role: &RoleName, name: &str) -> Option<Type> {
        let hints = self.hints.read();
        let (found, read_at) = hints.get(&(role.clone(), name.to_owned()))?;
        (read_at.elapsed() <= VALID_FOR).then(|| found.clone())
    }

    /// Removes the cached types of a statement's hints.
    pub(crate) fn forget_hints(&self, bound: &BoundStatement, role: &RoleName) {
        if bound.hints.iter().all(Option::is_none) {
            return;
        }
        let mut hints = self.hints.write();
        for TypeHint(name) in bound.hints.iter().flatten() {
            hints.remove(&(role.clone(), name.clone()));
        }
    }

    /// Caches the type of a hint, unless cached data has become invalid since `generation` or the
    /// name is too long.
    pub(crate) fn keep_hint(&self, role: &RoleName, name: &str, found: &Type, generation: u64) {
        let mut hints = self.hints.write();
        if self.generation() == generation && name.len() <= LONGEST_TYPE_NAME {
            make_room(&mut hints);
            hints.insert(
                (role.clone(), name.to_owned()),
                (found.clone(), Instant::now()),
            );
        }
    }
}
