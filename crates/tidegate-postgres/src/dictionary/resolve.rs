//! From the number of a type to the type with all its parts.

use std::collections::HashMap;

use tidegate_sql::Error;
use tidegate_values::Type;
use tidegate_wire::version;
use tokio::time::Instant;

use super::tree::{Entry, TREE_13, TREE_14, build};
use super::{BELIEVED, Dictionary, make_room};
use crate::connection::Connection;
use crate::session::lookup::Lookup;

impl Connection {
    /// The types with these numbers, in this order; those that are not known yet are read from
    /// `pg_catalog` in one round trip.
    pub(crate) async fn resolve(
        &mut self,
        dictionary: &Dictionary,
        oids: &[u32],
        deadline: Option<Instant>,
    ) -> Result<Vec<Type>, Error> {
        let generation = dictionary.generation();
        let (known, missing) = dictionary.known(oids, Instant::now());
        if missing.is_empty() {
            return Ok(known.into_iter().flatten().collect());
        }
        let entries = self.read_types(&missing, deadline).await?;
        dictionary.keep_types(&missing, &entries, generation);
        let found = known.into_iter().zip(oids);
        Ok(found
            .map(|(known, oid)| known.unwrap_or_else(|| build(*oid, &entries, 0)))
            .collect())
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
            parameters: &[&parameter],
            // Everybody may read pg_catalog.
            switch: None,
            deadline,
        };
        let mut entries = HashMap::new();
        let mut take = |row: tidegate_values::RawRow<'_>| {
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
    /// Each type as far as it is known, and the numbers of the others, each once.
    fn known(&self, oids: &[u32], now: Instant) -> (Vec<Option<Type>>, Vec<u32>) {
        let types = self.types.read();
        let believed = |oid: &u32| {
            let (known, learnt) = types.get(oid)?;
            (now - *learnt <= BELIEVED).then(|| known.clone())
        };
        let known: Vec<_> = oids
            .iter()
            .map(|oid| Type::from_oid(*oid).or_else(|| believed(oid)))
            .collect();
        let unknown = known.iter().zip(oids).filter(|(known, _)| known.is_none());
        let mut missing: Vec<u32> = unknown.map(|(_, oid)| *oid).collect();
        missing.sort_unstable();
        missing.dedup();
        (known, missing)
    }

    /// Keeps types, unless a definition has changed since they began to be read.
    fn keep_types(&self, oids: &[u32], entries: &HashMap<u32, Entry>, generation: u64) {
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
}
