//! Row level security on events: whether a role may see *this image* of a row.
//!
//! The policies are evaluated by PostgreSQL, on a connection that logged in as the role, over the
//! images that the log brought and not over the table: what a row looks like now says nothing
//! about what it looked like then.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_sql::codec::json_string;
use tidegate_sql::{Executor, Login, Principal, Type, TypeKind};
use tokio::time::Instant;

use crate::change::{Change, Event};
use crate::cursor::Place;
use crate::pgoutput::{Tuple, Value};
use crate::question::{Asked, ask, text};
use crate::rights::Rights;
use crate::shape::Shape;

/// How many verdicts are remembered for others with the same role.
const REMEMBERED: usize = 4096;

/// What row level security asks of a row that a role reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// The query that says which rows of a document pass.
    query: String,
    /// The columns that it looks at; `None` when that cannot be told.
    columns: Option<Vec<Box<str>>>,
    /// Whether any row can pass.
    hopeless: bool,
}

/// One policy of a table.
pub(crate) struct Clause {
    pub(crate) permissive: bool,
    pub(crate) condition: Box<str>,
    /// The numbers of the columns that it names, between commas.
    pub(crate) columns: Box<str>,
}

impl Policy {
    /// Puts the policies of a role together as PostgreSQL does: one of the permissive ones must
    /// hold, and every restrictive one (PostgreSQL, "Row Security Policies"). `numbers` has the
    /// columns with what policies call them.
    pub(crate) fn new(
        (schema, name): (&str, &str),
        policies: Vec<Clause>,
        numbers: &[(Box<str>, Box<str>)],
    ) -> Self {
        let (mut permissive, mut restrictive) = (Vec::new(), Vec::new());
        let mut columns = Some(Vec::new());
        for policy in policies {
            // A policy that looks at the row as a whole looks at every column.
            if policy.condition.contains(".*") {
                columns = None;
            }
            for number in policy.columns.split(',') {
                let named = numbers.iter().find(|(known, _)| &**known == number);
                if let (Some(columns), Some((_, name))) = (&mut columns, named) {
                    columns.push(name.clone());
                }
            }
            let side = if policy.permissive {
                &mut permissive
            } else {
                &mut restrictive
            };
            side.push(policy.condition);
        }
        let hopeless = permissive.is_empty();
        let condition = condition(&permissive, &restrictive);
        let query = query((schema, name), numbers, &condition);
        Self {
            query,
            columns,
            hopeless,
        }
    }

    /// The columns that it looks at; all when that cannot be told.
    pub(crate) fn columns(&self) -> Option<&[Box<str>]> {
        self.columns.as_deref()
    }

    /// Whether an image holds everything that the policies look at.
    fn can_judge(&self, shape: &Shape, tuple: &Tuple) -> bool {
        let is_there = |at: usize| tuple.value(at) != Value::Absent;
        match &self.columns {
            Some(columns) => columns
                .iter()
                .all(|column| shape.find(column).is_some_and(is_there)),
            None => (0..shape.columns.len()).all(is_there),
        }
    }
}

fn condition(permissive: &[Box<str>], restrictive: &[Box<str>]) -> String {
    let mut condition = String::new();
    for (number, one) in permissive.iter().enumerate() {
        let word = if number == 0 { "((" } else { " OR (" };
        write!(condition, "{word}{one})").expect("a String takes everything");
    }
    condition.push(')');
    for one in restrictive {
        write!(condition, " AND ({one})").expect("a String takes everything");
    }
    condition
}

/// The numbers, from 1, of the rows of a document that pass. The rows have the table's name,
/// because conditions may call it by that.
fn query(
    (schema, name): (&str, &str),
    numbers: &[(Box<str>, Box<str>)],
    condition: &str,
) -> String {
    let (schema, name) = (quoted(schema), quoted(name));
    let mut columns = String::new();
    let mut number = String::from("number of the row");
    for (_, column) in numbers {
        // A name that no column has: longer than every one that is alike.
        if column.starts_with(&*number) {
            number = format!("{column}_");
        }
        write!(columns, "{}, ", quoted(column)).expect("a String takes everything");
    }
    let number = quoted(&number);
    format!(
        "SELECT {name}.{number}::text FROM ROWS FROM (pg_catalog.jsonb_populate_recordset(\
         NULL::{schema}.{name}, :rows::pg_catalog.jsonb)) WITH ORDINALITY \
         AS {name}({columns}{number}) WHERE {condition}"
    )
}

/// An identifier of the catalog, quoted.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Decides which images a role may see, once for all of its subscriptions to a table.
pub(crate) struct Judge {
    executor: Arc<dyn Executor>,
    login: Login,
    state: tokio::sync::Mutex<State>,
}

struct State {
    /// `None` since row level security does not apply any more: then every image may be seen.
    policy: Option<Policy>,
    /// The stamp of the rights that the policy came with, and when they were asked for.
    stamp: Box<str>,
    asked: Instant,
    /// By shape too: another log may have the same places.
    known: HashMap<(u64, Place), bool>,
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge")
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

impl State {
    fn renew(&mut self, rights: &Rights) {
        if rights.asked < self.asked {
            return;
        }
        self.stamp.clone_from(&rights.stamp);
        self.asked = rights.asked;
        if self.policy != rights.policy {
            self.policy.clone_from(&rights.policy);
            self.known.clear();
        }
    }
}

impl Judge {
    pub(crate) fn new(executor: Arc<dyn Executor>, login: Login, rights: &Rights) -> Self {
        Self {
            executor,
            login,
            state: tokio::sync::Mutex::new(State {
                policy: rights.policy.clone(),
                stamp: rights.stamp.clone(),
                asked: rights.asked,
                known: HashMap::new(),
            }),
        }
    }

    /// Takes the policies that come with rights, once it is done with what it judges. Those that
    /// were asked for before the ones it has are old.
    pub(crate) async fn renew(&self, rights: &Rights) {
        self.state.lock().await.renew(rights);
    }

    /// The same, unless it is judging now; says whether it was not.
    pub(crate) fn try_renew(&self, rights: &Rights) -> bool {
        let state = self.state.try_lock();
        state.map(|mut state| state.renew(rights)).is_ok()
    }

    /// Whether its policies came with rights of this stamp.
    pub(crate) async fn is_of(&self, stamp: &str) -> bool {
        *self.state.lock().await.stamp == *stamp
    }

    /// Which of the changes may be seen, one verdict each. An image that cannot be judged is not
    /// seen. `None` as long as PostgreSQL does not show yet what their transactions did, which the
    /// policies may look at.
    ///
    /// # Errors
    /// PostgreSQL did not answer, or the policies failed.
    pub(crate) async fn see(
        &self,
        changes: &[Arc<Change>],
    ) -> tidegate_sql::Result<Option<Vec<bool>>> {
        // Whoever comes second finds what the first has learnt.
        let mut state = self.state.lock().await;
        let State { policy, known, .. } = &mut *state;
        let Some(policy) = policy else {
            return Ok(Some(vec![true; changes.len()]));
        };
        let mut asked = Vec::new();
        for change in changes {
            if known.contains_key(&key(change)) {
                continue;
            }
            let judged = match &change.event {
                Event::Truncated => Some(true),
                Event::Row(..) if policy.hopeless => Some(false),
                Event::Row(_, tuple) if policy.can_judge(&change.shape, tuple) => None,
                Event::Row(..) => Some(false),
            };
            match judged {
                Some(verdict) => drop(known.insert(key(change), verdict)),
                None => asked.push(change),
            }
        }
        if !asked.is_empty() {
            let Some(visible) = self.ask(policy, &asked).await? else {
                return Ok(None);
            };
            for (change, visible) in asked.iter().zip(visible) {
                known.insert(key(change), visible);
            }
        }
        let seen = |change: &Arc<Change>| known.get(&key(change)).copied() == Some(true);
        let seen = changes.iter().map(seen).collect();
        if known.len() > REMEMBERED {
            let newest = changes
                .last()
                .map(|change| change.place)
                .unwrap_or_default();
            known.retain(|(_, place), _| *place >= newest);
        }
        Ok(Some(seen))
    }

    async fn ask(
        &self,
        policy: &Policy,
        changes: &[&Arc<Change>],
    ) -> tidegate_sql::Result<Option<Vec<bool>>> {
        let document = document(changes);
        let who = Principal::Role(self.login.clone());
        let values = [document.as_str()];
        let mut after: Vec<u32> = changes.iter().map(|change| change.transaction).collect();
        after.dedup();
        let questions = [(policy.query.as_str(), &values[..])];
        let Asked::Answers(answers) = ask(&*self.executor, &who, &after, &questions).await? else {
            return Ok(None);
        };
        let mut visible = vec![false; changes.len()];
        for row in answers.iter().flatten() {
            let number: usize = text(row, 0)
                .parse()
                .map_err(tidegate_sql::Error::internal)?;
            if let Some(visible) = number.checked_sub(1).and_then(|at| visible.get_mut(at)) {
                *visible = true;
            }
        }
        Ok(Some(visible))
    }
}

/// The images as a JSON array: every value in its text form, documents as themselves.
fn document(changes: &[&Arc<Change>]) -> String {
    let mut out = BytesMut::from(&b"["[..]);
    for (number, change) in changes.iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b",");
        }
        if let Event::Row(_, tuple) = &change.event {
            object(&change.shape, tuple, &mut out);
        }
    }
    out.extend_from_slice(b"]");
    String::from_utf8_lossy(&out).into_owned()
}

fn object(shape: &Shape, tuple: &Tuple, out: &mut BytesMut) {
    let mut separator = &b"{"[..];
    for (at, column) in shape.columns.iter().enumerate() {
        let Value::Text(raw) = tuple.value(at) else {
            continue;
        };
        out.extend_from_slice(separator);
        separator = b",";
        json_string(column.name.as_bytes(), out);
        out.extend_from_slice(b":");
        if is_document(&column.r#type) {
            out.extend_from_slice(raw);
        } else {
            json_string(raw, out);
        }
    }
    out.extend_from_slice(if separator == b"{" { b"{}" } else { b"}" });
}

fn is_document(r#type: &Type) -> bool {
    match r#type.kind() {
        TypeKind::Domain(base) => is_document(base),
        _ => matches!(*r#type, Type::JSON | Type::JSONB),
    }
}

fn key(change: &Change) -> (u64, Place) {
    (change.shape.generation, change.place)
}
