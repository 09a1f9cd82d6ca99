//! From the name of a type, as a caller writes it, to the type.

use postgres_types::FromSql;
use tidegate_sql::{BoundStatement, Error, InputError, RoleName, TypeHint};
use tidegate_values::{Type, TypeKind};
use tidegate_wire::is_outage;
use tokio::time::Instant;

use super::{BELIEVED, Dictionary, make_room};
use crate::connection::Connection;
use crate::session::lookup::Lookup;
use crate::session::task::Task;

/// PostgreSQL reads the name as a value: synonyms, `X[]`, `_X` and schemas work, and a length is
/// read over.
const RESOLVE: &str = "SELECT pg_catalog.to_regtype($1)::pg_catalog.oid";

/// The longest name that is remembered: an array of a qualified name.
const LONGEST_NAME: usize = 160;

/// Longer names are no type's: schema and type of 63 bytes, quoted, each quote twice, with lengths
/// and brackets. Reading a name cannot be interrupted and takes the square of its length at worst.
const LONGEST_READ: usize = 512;

impl Connection {
    /// The type that each hint of the statement names. Where names mean something else than at the
    /// beginning of the session, what is known of them is not used, nor is what is learnt kept.
    pub(crate) async fn resolve_hints(
        &mut self,
        task: &Task<'_>,
        own_names: bool,
    ) -> Result<Vec<Option<Type>>, Error> {
        let mut types = Vec::with_capacity(task.bound.hints.len());
        for (place, hint) in task.bound.hints.iter().enumerate() {
            let Some(TypeHint(name)) = hint else {
                types.push(None);
                continue;
            };
            let found = if own_names {
                self.hint_by_own_names(task, name).await?
            } else {
                self.look_hint_up(task, name).await?
            };
            let Some(found) = found else {
                let placeholder = task.bound.statement.placeholders().get(place);
                return Err(Error::Input(InputError::UnknownHint {
                    name: placeholder.cloned().unwrap_or_default(),
                    hint: shown(name),
                }));
            };
            types.push(Some(found));
        }
        Ok(types)
    }

    async fn hint_by_own_names(
        &mut self,
        task: &Task<'_>,
        name: &str,
    ) -> Result<Option<Type>, Error> {
        let (role, dictionary) = (&task.login.role, task.dictionary);
        let known = dictionary.hint(role, name);
        if known.is_some() {
            return Ok(known);
        }
        let generation = dictionary.generation();
        let found = self.look_hint_up(task, name).await?;
        if let Some(found) = &found {
            dictionary.keep_hint((role, name), found, generation);
        }
        Ok(found)
    }

    async fn look_hint_up(&mut self, task: &Task<'_>, name: &str) -> Result<Option<Type>, Error> {
        if name.contains('\0') || name.len() > LONGEST_READ {
            return Ok(None);
        }
        let lookup = Lookup {
            text: RESOLVE,
            parameters: &[name],
            switch: task.switch,
            deadline: task.deadline,
        };
        let mut oid = None;
        let mut take = |row: tidegate_values::RawRow<'_>| {
            if let Some(raw) = row.values().next()? {
                oid = Some(u32::from_sql(&Type::OID, raw).ok()?);
            }
            Some(())
        };
        match self.look_up(&lookup, 1, &mut take).await? {
            Ok(()) => {}
            Err(error) if is_outage(&error.rejection.sqlstate) => {
                return Err(self.rejected(error, task.bound));
            }
            // Text that is no type name at all is a syntax error.
            Err(_) => return Ok(None),
        }
        let Some(oid) = oid else { return Ok(None) };
        let types = self.resolve(task.dictionary, &[oid], task.deadline).await?;
        Ok(types
            .into_iter()
            .next()
            .filter(|found| *found.kind() != TypeKind::Pseudo))
    }
}

/// As much of a name as an error shows.
fn shown(name: &str) -> String {
    let mut letters = name.chars();
    let mut shown: String = letters.by_ref().take(LONGEST_NAME).collect();
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
}

impl Dictionary {
    fn hint(&self, role: &RoleName, name: &str) -> Option<Type> {
        let hints = self.hints.read();
        let (found, learnt) = hints.get(&(role.clone(), name.to_owned()))?;
        (learnt.elapsed() <= BELIEVED).then(|| found.clone())
    }

    /// Forgets what the hints of a statement name.
    pub(crate) fn forget_hints(&self, bound: &BoundStatement, role: &RoleName) {
        if bound.hints.iter().all(Option::is_none) {
            return;
        }
        let mut hints = self.hints.write();
        for TypeHint(name) in bound.hints.iter().flatten() {
            hints.remove(&(role.clone(), name.clone()));
        }
    }

    /// Keeps what a hint was found to name, unless a definition has changed since the search began.
    fn keep_hint(&self, (role, name): (&RoleName, &str), found: &Type, generation: u64) {
        let mut hints = self.hints.write();
        if self.generation() == generation && name.len() <= LONGEST_NAME {
            make_room(&mut hints);
            hints.insert(
                (role.clone(), name.to_owned()),
                (found.clone(), Instant::now()),
            );
        }
    }
}
