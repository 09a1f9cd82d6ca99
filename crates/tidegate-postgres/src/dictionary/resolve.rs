//! From the number of a type to the type with all its parts.

use std::collections::HashMap;

use tidegate_sql::{Error, Type};
use tokio::time::Instant;

use super::tree::{Entry, TREE_13, TREE_14, build};
use super::{BELIEVED, Dictionary, make_room};
use crate::connection::Connection;
use crate::session::lookup::Lookup;
use crate::version;

impl Connection {
    /// The types with these numbers, in this order; those that are not known yet are read from
    /// `pg_catalog` in one round trip.
    pub(crate) async fn resolve(
        &mut self,
        dictionary: &Dictionary,
        oids: &[u32],
        deadline: Option<Instant>,
    ) -> Result<Vec<Type>, Error> {
        let missing = dictionary.missing(oids, Instant::now());
        if !missing.is_empty() {
            let entries = self.read_types(&missing, deadline).await?;
            let mut types = dictionary.types.write();
            make_room(&mut types);
            let now = Instant::now();
            types.extend(
                missing
                    .iter()
                    .map(|oid| (*oid, (build(*oid, &entries, 0), now))),
            );
        }
        let types = dictionary.types.read();
        let find = |oid: &u32| {
            Type::from_oid(*oid)
                .or_else(|| types.get(oid).map(|(known, _)| known.clone()))
                .unwrap_or_else(|| build(*oid, &HashMap::new(), 0))
        };
        Ok(oids.iter().map(find).collect())
    }

    async fn read_types(
        &mut self,
        oids: &[u32],
        deadline: Option<Instant>,
    ) -> Result<HashMap<u32, Entry>, Error> {
        let text = if version::has_multiranges(self.server_version()) {
            TREE_14
        } else {
            TREE_13
        };
        let list: Vec<String> = oids.iter().map(u32::to_string).collect();
        let parameter = format!("{{{}}}", list.join(","));
        let lookup = Lookup {
            text,
            parameter: &parameter,
            deadline,
        };
        let mut entries = HashMap::new();
        let mut take = |row: tidegate_sql::RawRow<'_>| {
            let (oid, entry) = Entry::read(row)?;
            entries.insert(oid, entry);
            Some(())
        };
        let outcome = self.look_up(&lookup, Entry::COLUMNS, &mut take).await?;
        outcome.map_err(|error| Error::internal(error.rejection.message))?;
        Ok(entries)
    }
}

impl Dictionary {
    fn missing(&self, oids: &[u32], now: Instant) -> Vec<u32> {
        let types = self.types.read();
        let mut missing: Vec<u32> = oids
            .iter()
            .copied()
            .filter(|oid| Type::from_oid(*oid).is_none())
            .filter(|oid| {
                types
                    .get(oid)
                    .is_none_or(|(_, learnt)| now - *learnt > BELIEVED)
            })
            .collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }
}
