//! Letting PostgreSQL parse and describe statements.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tidegate_sql::Error;
use tidegate_values::Type;
use tidegate_wire::body::{self, Field};
use tidegate_wire::rejection::ServerError;
use tidegate_wire::tag;

use super::cache::{Prepared, StatementCache};
use super::prefix::Prefix;
use super::task::{Failure, Task};
use crate::connection::Connection;
use crate::dictionary::shape::Shape;

/// A statement that is being prepared.
struct Unprepared<'a> {
    task: &'a Task<'a>,
    /// Its name in the session; empty for one that is used once.
    name: String,
    hints: Vec<Option<Type>>,
}

/// What PostgreSQL says of a statement, with types by number.
#[derive(Default)]
struct Described {
    parameters: Vec<u32>,
    fields: Vec<Field>,
}

impl Described {
    /// The numbers of all types, of parameters first.
    fn types(&self) -> impl Iterator<Item = u32> {
        let columns = self.fields.iter().map(|field| field.type_oid);
        self.parameters.iter().copied().chain(columns)
    }
}

impl Connection {
    /// Parses and describes a statement in a round trip of its own, and looks its types up.
    pub(crate) async fn prepare(&mut self, task: &Task<'_>) -> Result<Arc<Prepared>, Failure> {
        let prepared = self.prepare_all(&[task]).await?;
        let none = || Error::internal("a statement without a description").into();
        prepared.into_iter().next().ok_or_else(none)
    }

    /// Parses and describes statements of one caller in one round trip, and looks their types up in
    /// another. If PostgreSQL refuses one, none of them is prepared.
    pub(crate) async fn prepare_all(
        &mut self,
        tasks: &[&Task<'_>],
    ) -> Result<Vec<Arc<Prepared>>, Failure> {
        let Some(first) = tasks.first() else {
            return Ok(Vec::new());
        };
        // What the last prefix met says nothing of an error that comes before the next.
        self.session.prefix = Prefix::default();
        let generation = first.dictionary.generation();
        let keeps = self.may_keep_what_is_learnt(first).await?;
        let mut unprepared = Vec::with_capacity(tasks.len());
        for task in tasks {
            let hints = self.resolve_hints(task, keeps).await?;
            let name = if keeps && task.is_kept() {
                self.session.statements.name()
            } else {
                String::new()
            };
            unprepared.push(Unprepared { task, name, hints });
        }
        let described = self.describe(first, &unprepared).await?;
        let shapes = self.shapes(&unprepared, described, generation).await?;
        let prepared = unprepared.into_iter().zip(shapes);
        Ok(prepared
            .map(|(one, shape)| self.keep(one, shape, keeps))
            .collect())
    }

    fn keep(&mut self, one: Unprepared<'_>, shape: Shape, keeps: bool) -> Arc<Prepared> {
        let task = one.task;
        let prepared = Arc::new(Prepared::new(one.name, Arc::new(shape)));
        if keeps && task.is_kept() {
            self.session.statements.keep(task.bound, prepared.clone());
        }
        if keeps && task.is_short() {
            task.dictionary
                .keep_shape(task.bound, &task.login.role, &prepared.shape);
        }
        prepared
    }

    /// Queues a `Parse`, and a `Close` for each statement that was evicted.
    pub(crate) fn push_parse(
        &mut self,
        task: &Task<'_>,
        name: &str,
        types: impl Iterator<Item = u32>,
    ) -> Result<(), Error> {
        let out = &mut self.channel.outbound;
        push_parse(&mut self.session.statements, out, task, (name, types))
    }

    /// Queues a command of our own that takes and returns nothing.
    pub(super) fn push_command(&mut self, text: &'static str) -> Result<(), Error> {
        let out = &mut self.channel.outbound;
        let nothing = |(): (), _: &mut bytes::BytesMut| Ok(postgres_protocol::IsNull::Yes);
        frontend::parse("", text, [], out)
            .and_then(|()| {
                frontend::bind("", "", [], [], nothing, [], out)
                    .map_err(|_| std::io::Error::other("an empty Bind"))
            })
            .and_then(|()| frontend::execute("", 0, out))
            .map_err(Error::internal)
    }

    /// Has PostgreSQL parse and describe statements in one pipeline.
    async fn describe(
        &mut self,
        first: &Task<'_>,
        statements: &[Unprepared<'_>],
    ) -> Result<Vec<Described>, Failure> {
        self.begin_pipeline();
        self.push_prefix(first.begins(), first.switch)?;
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
                Err(error) => return Err(self.last_word(failure, error, first).into()),
            };
            let body = self.channel.inbound.body();
            let fields = match tag {
                tag::PARAMETER_DESCRIPTION => {
                    let parameters = body::parameter_description(body);
                    let Some(parameters) = parameters else {
                        return Err(self.breach("an unreadable description").into());
                    };
                    current.parameters = parameters;
                    continue;
                }
                tag::ROW_DESCRIPTION => body::row_description(body),
                tag::NO_DATA => Some(Vec::new()),
                tag::ERROR_RESPONSE => {
                    failure = Some(ServerError::read(body));
                    continue;
                }
                tag::READY_FOR_QUERY => {
                    self.ready_for_query()?;
                    break;
                }
                tag::PARSE_COMPLETE | tag::CLOSE_COMPLETE => continue,
                _ => None,
            };
            let Some(fields) = fields else {
                return Err(self.breach("an unreadable description").into());
            };
            current.fields = fields;
            described.push(std::mem::take(&mut current));
        }
        match self.refusal().or(failure) {
            Some(error) => Err(self.refused_description(error, statements, described.len())),
            None if described.len() == statements.len() => Ok(described),
            None => Err(self.breach("a statement without a description").into()),
        }
    }

    /// The failure of the statement at `index`; those in front of it were prepared, and are closed.
    fn refused_description(
        &mut self,
        error: ServerError,
        statements: &[Unprepared<'_>],
        index: usize,
    ) -> Failure {
        for Unprepared { name, .. } in statements.iter().take(index) {
            self.session.statements.discard(name);
        }
        match statements.get(index).or(statements.last()) {
            Some(one) if one.task.has_lost_hint(&error) => Failure::Stale(Box::new(error)),
            Some(one) => self.rejected(error, one.task.bound).into(),
            None => self.breach("an error of no statement").into(),
        }
    }

    /// The error of a stream that ended: what PostgreSQL said last, if it did.
    pub(crate) fn last_word(
        &mut self,
        said: Option<ServerError>,
        ended: Error,
        task: &Task<'_>,
    ) -> Error {
        match said {
            Some(mut said) if !matches!(ended, Error::Deadline) => {
                said.rejection.fatal = true;
                self.rejected(said, task.bound)
            }
            _ => ended,
        }
    }

    /// The shapes of described statements; types that are not known are looked up together.
    async fn shapes(
        &mut self,
        statements: &[Unprepared<'_>],
        described: Vec<Described>,
        generation: u64,
    ) -> Result<Vec<Shape>, Error> {
        let Some(Unprepared { task: first, .. }) = statements.first() else {
            return Ok(Vec::new());
        };
        let numbers: Vec<u32> = described.iter().flat_map(Described::types).collect();
        let types = self.resolve(first.dictionary, &numbers, first.deadline);
        let mut types = types.await?.into_iter();
        let shape = |(one, described): (&Unprepared<'_>, Described)| {
            let count = described.parameters.len();
            let of_it = types
                .by_ref()
                .take(count + described.fields.len())
                .collect();
            let mut shape = Shape::new(count, described.fields, of_it, generation);
            if let Some(pace) = first.dictionary.pace(one.task.bound, &one.task.login.role) {
                shape.pace = pace;
            }
            shape
        };
        Ok(statements.iter().zip(described).map(shape).collect())
    }
}

/// [`Connection::push_parse`] into any buffer.
pub(super) fn push_parse(
    statements: &mut StatementCache,
    out: &mut BytesMut,
    task: &Task<'_>,
    (name, types): (&str, impl Iterator<Item = u32>),
) -> Result<(), Error> {
    let dropped = statements.take_dropped();
    let start = out.len();
    let queued = dropped
        .iter()
        .try_for_each(|name| frontend::close(b'S', name, out))
        .and_then(|()| frontend::parse(name, task.bound.statement.text(), types, out));
    queued.map_err(|error| {
        // The lexer lets neither a zero byte nor so many placeholders pass.
        out.truncate(start);
        Error::internal(error)
    })
}
