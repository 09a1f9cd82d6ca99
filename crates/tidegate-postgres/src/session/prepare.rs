//! Lets PostgreSQL parse and describe statements.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tidegate_sql::{Description, Error};
use tidegate_values::Type;
use tidegate_wire::body::{self, FieldDescription};
use tidegate_wire::server_error::ServerError;
use tidegate_wire::tag;

use super::type_hints::resolve_hints;
use super::type_lookup::resolve_types;
use crate::connection::{Connection, Prefix};
use crate::metadata::{StatementDescription, StatementKey};
use crate::statement::{
    AttemptError, PreparedStatement, RunError, SideEffects, StatementCache, StatementTask,
    TransactionPosition,
};

/// A statement that is being prepared.
struct Unprepared<'a> {
    task: &'a StatementTask<'a>,
    /// The name of the statement in the session; empty for a statement that is used once.
    name: String,
    hints: Vec<Option<Type>>,
}

/// How PostgreSQL described a statement, with the OIDs of types.
#[derive(Default)]
struct Described {
    parameters: Vec<u32>,
    fields: Vec<FieldDescription>,
}

impl Described {
    /// The OIDs of all types: those of the parameters, followed by those of the columns.
    fn types(&self) -> impl Iterator<Item = u32> {
        let columns = self.fields.iter().map(|field| field.type_oid);
        self.parameters.iter().copied().chain(columns)
    }
}

impl Connection {
    /// Parses and describes a statement in one round trip. If types are unknown, looks them up in
    /// another round trip.
    pub(crate) async fn prepare(
        &mut self,
        task: &StatementTask<'_>,
    ) -> Result<Arc<PreparedStatement>, AttemptError> {
        let prepared = self.prepare_all(&[task]).await?;
        let missing = || Error::internal("a statement without a description").into();
        prepared.into_iter().next().ok_or_else(missing)
    }

    /// Parses and describes a statement without running it.
    pub(crate) async fn describe_only(
        &mut self,
        task: &StatementTask<'_>,
    ) -> Result<Description, RunError> {
        let prepared = match self.prepare(task).await {
            Ok(prepared) => prepared,
            Err(AttemptError::Final(error)) => return Err(self.run_error(error)),
            Err(AttemptError::Stale(error)) => {
                return Err(self.rejected(*error, task.bound).into());
            }
        };
        // Parsing a literal runs the input function of its type. This function may be user-defined
        // and have any side effect.
        if !task.is_kept() && task.position == TransactionPosition::Alone {
            self.session.note_side_effects(SideEffects::Everything);
        }
        let description = &prepared.description;
        Ok(Description {
            parameters: description.parameters.clone(),
            columns: description.columns.clone(),
        })
    }

    /// Parses and describes statements of one caller in one round trip. If types are unknown, looks
    /// them up in another round trip. If PostgreSQL refuses one statement, none of them stays
    /// prepared.
    pub(crate) async fn prepare_all(
        &mut self,
        tasks: &[&StatementTask<'_>],
    ) -> Result<Vec<Arc<PreparedStatement>>, AttemptError> {
        let Some(first) = tasks.first() else {
            return Ok(Vec::new());
        };
        // The prefix is cleared, so that an error is not attributed to the prefix of the previous
        // pipeline.
        self.session.prefix = Prefix::default();
        let generation = first.metadata.generation();
        let may_cache = self.may_cache(first).await?;
        let mut unprepared = Vec::with_capacity(tasks.len());
        for task in tasks {
            let hints = resolve_hints(self, task, may_cache).await?;
            let name = if may_cache && task.is_kept() {
                self.session.statements.name()
            } else {
                String::new()
            };
            unprepared.push(Unprepared { task, name, hints });
        }
        let described = self.describe(first, &unprepared).await?;
        let descriptions = self
            .descriptions(&unprepared, described, generation)
            .await?;
        let prepared = unprepared.into_iter().zip(descriptions);
        Ok(prepared
            .map(|(statement, description)| self.keep(statement, description, may_cache))
            .collect())
    }

    fn keep(
        &mut self,
        statement: Unprepared<'_>,
        description: StatementDescription,
        may_cache: bool,
    ) -> Arc<PreparedStatement> {
        let task = statement.task;
        let prepared = Arc::new(PreparedStatement::new(
            statement.name,
            Arc::new(description),
        ));
        if may_cache && task.is_kept() {
            self.session
                .statements
                .keep(StatementKey::of(task.bound), prepared.clone());
        }
        if may_cache && task.is_short() {
            task.metadata
                .keep_description(task.bound, &task.login.role, &prepared.description);
        }
        prepared
    }

    /// Queues a Close for each prepared statement that the cache no longer holds, then a Parse.
    pub(crate) fn push_parse(
        &mut self,
        task: &StatementTask<'_>,
        name: &str,
        types: impl Iterator<Item = u32>,
    ) -> Result<(), Error> {
        let out = &mut self.channel.outbound;
        push_parse(&mut self.session.statements, out, task, name, types)
    }

    /// Lets PostgreSQL parse and describe statements in one pipeline.
    async fn describe(
        &mut self,
        first: &StatementTask<'_>,
        statements: &[Unprepared<'_>],
    ) -> Result<Vec<Described>, AttemptError> {
        self.begin_pipeline();
        // PostgreSQL resolves names when it parses, and skips schemas of the `search_path` that the
        // current role may not use. So the role is switched first.
        self.push_prefix(first.begin_mode(), first.switch)?;
        for Unprepared { task, name, hints } in statements {
            let types = hints.iter().map(|hint| hint.as_ref().map_or(0, Type::oid));
            self.push_parse(task, name, types)?;
            frontend::describe(b'S', name, &mut self.channel.outbound).map_err(Error::internal)?;
        }
        self.sync();
        let (mut described, mut current) = (Vec::new(), Described::default());
        let mut failure = None;
        loop {
            let tag = match self.next(first.deadline).await {
                Ok(tag) => tag,
                Err(error) => return Err(self.stream_error(failure, error, first).into()),
            };
            match tag {
                tag::PARAMETER_DESCRIPTION => {
                    let parameters = body::parameter_description(self.channel.inbound.body());
                    let Some(parameters) = parameters else {
                        return Err(self.protocol_error("an unreadable description").into());
                    };
                    current.parameters = parameters;
                }
                // This is the last message about a statement. It follows the description of the
                // parameters.
                tag::ROW_DESCRIPTION | tag::NO_DATA => {
                    current.fields = self.fields(tag)?;
                    described.push(std::mem::take(&mut current));
                }
                // The session can be used again only after the ReadyForQuery that still follows.
                tag::ERROR_RESPONSE => {
                    failure = Some(ServerError::read(self.channel.inbound.body()));
                }
                tag::READY_FOR_QUERY => {
                    self.ready_for_query()?;
                    break;
                }
                tag::PARSE_COMPLETE | tag::CLOSE_COMPLETE => {}
                _ => return Err(self.unexpected(tag).into()),
            }
        }
        // After an error PostgreSQL skips the rest of the pipeline. So the refused statement
        // directly follows the described statements.
        match self.session.prefix.refusal().or(failure) {
            Some(error) => Err(self.refused_description(error, statements, described.len())),
            None if described.len() == statements.len() => Ok(described),
            None => Err(self
                .protocol_error("a statement without a description")
                .into()),
        }
    }

    /// The error for the statement at `index`, which PostgreSQL refused. Closes the statements
    /// before it, which were prepared.
    fn refused_description(
        &mut self,
        error: ServerError,
        statements: &[Unprepared<'_>],
        index: usize,
    ) -> AttemptError {
        for Unprepared { name, .. } in statements.iter().take(index) {
            self.session.statements.discard(name);
        }
        match statements.get(index).or(statements.last()) {
            Some(statement) if statement.task.has_stale_hint(&error) => {
                AttemptError::Stale(Box::new(error))
            }
            Some(statement) => self.rejected(error, statement.task.bound).into(),
            None => self.protocol_error("an error of no statement").into(),
        }
    }

    /// The error to report after a read has failed with `ended`. It is the error that PostgreSQL
    /// reported before, or `ended` if there is none or the deadline has passed.
    pub(crate) fn stream_error(
        &mut self,
        reported: Option<ServerError>,
        ended: Error,
        task: &StatementTask<'_>,
    ) -> Error {
        match reported {
            Some(mut reported) if !matches!(ended, Error::Deadline) => {
                reported.rejection.fatal = true;
                self.rejected(reported, task.bound)
            }
            _ => ended,
        }
    }

    /// Makes the descriptions of the statements. Looks up all unknown types together.
    async fn descriptions(
        &mut self,
        statements: &[Unprepared<'_>],
        described: Vec<Described>,
        generation: u64,
    ) -> Result<Vec<StatementDescription>, Error> {
        let Some(Unprepared { task: first, .. }) = statements.first() else {
            return Ok(Vec::new());
        };
        let numbers: Vec<u32> = described.iter().flat_map(Described::types).collect();
        let types = resolve_types(self, first.metadata, &numbers, first.deadline);
        let mut types = types.await?.into_iter();
        let description = |(statement, described): (&Unprepared<'_>, Described)| {
            let count = described.parameters.len();
            let own_types = types
                .by_ref()
                .take(count + described.fields.len())
                .collect();
            let mut description =
                StatementDescription::new(count, described.fields, own_types, generation);
            if let Some(latency) = first
                .metadata
                .latency(statement.task.bound, &statement.task.login.role)
            {
                description.latency = latency;
            }
            description
        };
        Ok(statements.iter().zip(described).map(description).collect())
    }
}

/// Appends to `out` a Close for each prepared statement that the cache no longer holds, then a
/// Parse.
pub(crate) fn push_parse(
    statements: &mut StatementCache,
    out: &mut BytesMut,
    task: &StatementTask<'_>,
    name: &str,
    types: impl Iterator<Item = u32>,
) -> Result<(), Error> {
    let dropped = statements.take_dropped();
    let start = out.len();
    let queued = dropped
        .iter()
        .try_for_each(|name| frontend::close(b'S', name, out))
        .and_then(|()| frontend::parse(name, task.bound.statement.text(), types, out));
    queued.map_err(|error| {
        // The lexer refuses texts with zero bytes or too many placeholders, so this error is
        // unexpected.
        out.truncate(start);
        Error::internal(error)
    })
}
