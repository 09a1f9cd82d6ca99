//! From the name of a type, as a caller writes it, to the type.

use postgres_types::FromSql;
use tidegate_sql::{Error, InputError, RoleName, Type, TypeHint, TypeKind};
use tokio::time::Instant;

use super::{BELIEVED, Dictionary, make_room};
use crate::connection::{Connection, is_outage};
use crate::session::lookup::Lookup;
use crate::session::task::Task;

/// PostgreSQL reads the name as a value: synonyms, `X[]`, `_X` and schemas work, and a length is
/// read over.
const RESOLVE: &str = "SELECT pg_catalog.to_regtype($1)::pg_catalog.oid";

/// The longest name that is remembered: an array of a qualified name.
const LONGEST_NAME: usize = 160;

impl Connection {
    /// The type that each hint of the statement names.
    pub(crate) async fn resolve_hints(
        &mut self,
        task: &Task<'_>,
    ) -> Result<Vec<Option<Type>>, Error> {
        let mut types = Vec::with_capacity(task.bound.hints.len());
        for (place, hint) in task.bound.hints.iter().enumerate() {
            let Some(TypeHint(name)) = hint else {
                types.push(None);
                continue;
            };
            let known = task.dictionary.hint(&task.login.role, name);
            let found = match known {
                Some(known) => Some(known),
                None => self.look_hint_up(task, name).await?,
            };
            let Some(found) = found else {
                let placeholder = task.bound.statement.placeholders().get(place);
                return Err(Error::Input(InputError::UnknownHint {
                    name: placeholder.cloned().unwrap_or_default(),
                    hint: name.clone(),
                }));
            };
            types.push(Some(found));
        }
        Ok(types)
    }

    async fn look_hint_up(&mut self, task: &Task<'_>, name: &str) -> Result<Option<Type>, Error> {
        if name.contains('\0') {
            return Ok(None);
        }
        let lookup = Lookup {
            text: RESOLVE,
            parameter: name,
            deadline: task.deadline,
        };
        let mut oid = None;
        let mut take = |row: tidegate_sql::RawRow<'_>| {
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
        let found = types
            .into_iter()
            .next()
            .filter(|found| *found.kind() != TypeKind::Pseudo);
        if let Some(found) = &found
            && name.len() <= LONGEST_NAME
        {
            task.dictionary.keep_hint(&task.login.role, name, found);
        }
        Ok(found)
    }
}

impl Dictionary {
    fn hint(&self, role: &RoleName, name: &str) -> Option<Type> {
        let hints = self.hints.read();
        let (found, learnt) = hints.get(&(role.clone(), name.to_owned()))?;
        (learnt.elapsed() <= BELIEVED).then(|| found.clone())
    }

    fn keep_hint(&self, role: &RoleName, name: &str, found: &Type) {
        let mut hints = self.hints.write();
        make_room(&mut hints);
        hints.insert(
            (role.clone(), name.to_owned()),
            (found.clone(), Instant::now()),
        );
    }
}
