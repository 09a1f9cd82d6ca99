//! Letting PostgreSQL parse and describe a statement.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tidegate_sql::{Error, Type};

use super::cache::{Prepared, StatementCache};
use super::prefix::Prefix;
use super::task::{Failure, Task};
use crate::connection::Connection;
use crate::dictionary::shape::Shape;
use crate::wire::body::{self, Field};
use crate::wire::rejection::ServerError;
use crate::wire::tag;

/// What PostgreSQL says of a statement, with types by number.
#[derive(Default)]
struct Described {
    parameters: Vec<u32>,
    fields: Vec<Field>,
}

impl Connection {
    /// Parses and describes the statement in a round trip of its own, and looks its types up.
    pub(crate) async fn prepare(&mut self, task: &Task<'_>) -> Result<Arc<Prepared>, Failure> {
        // What the last prefix met says nothing of an error that comes before the next.
        self.session.prefix = Prefix::default();
        let generation = task.dictionary.generation();
        let keeps = self.may_keep_what_is_learnt(task).await?;
        let hints = self.resolve_hints(task, keeps).await?;
        let name = if keeps && task.is_kept() {
            self.session.statements.name()
        } else {
            String::new()
        };
        self.begin_pipeline();
        self.push_prefix(task.begins(), task.switch)?;
        self.push_parse(
            task,
            &name,
            hints.iter().map(|hint| hint.as_ref().map_or(0, Type::oid)),
        )?;
        let described = self.describe(task, &name).await?;
        let shape = self.shape(task, described, generation).await?;
        let verdict = Arc::default();
        let prepared = Arc::new(Prepared {
            name,
            shape,
            verdict,
        });
        if keeps && task.is_kept() {
            self.session.statements.keep(task.bound, prepared.clone());
        }
        if keeps && task.is_short() {
            task.dictionary
                .keep_shape(task.bound, &task.login.role, &prepared.shape);
        }
        Ok(prepared)
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

    async fn describe(&mut self, task: &Task<'_>, name: &str) -> Result<Described, Failure> {
        frontend::describe(b'S', name, &mut self.channel.outbound).map_err(Error::internal)?;
        self.sync();
        let mut described = Described::default();
        let mut failure = None;
        loop {
            let tag = match self.next(task.deadline).await {
                Ok(tag) => tag,
                Err(error) => return Err(self.last_word(failure, error, task).into()),
            };
            let body = self.channel.inbound.body();
            let understood = match tag {
                tag::PARAMETER_DESCRIPTION => body::parameter_description(body)
                    .map(|parameters| described.parameters = parameters),
                tag::ROW_DESCRIPTION => {
                    body::row_description(body).map(|fields| described.fields = fields)
                }
                tag::ERROR_RESPONSE => {
                    failure = Some(ServerError::read(body));
                    Some(())
                }
                tag::READY_FOR_QUERY => {
                    self.ready_for_query()?;
                    break;
                }
                // Of Close, and of a statement without rows.
                tag::PARSE_COMPLETE | tag::CLOSE_COMPLETE | tag::NO_DATA => Some(()),
                _ => None,
            };
            if understood.is_none() {
                return Err(self.breach("an unreadable description").into());
            }
        }
        match self.refusal().or(failure) {
            Some(error) if task.has_lost_hint(&error) => Err(Failure::Stale(Box::new(error))),
            Some(error) => Err(self.rejected(error, task.bound).into()),
            None => Ok(described),
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

    async fn shape(
        &mut self,
        task: &Task<'_>,
        described: Described,
        generation: u64,
    ) -> Result<Arc<Shape>, Error> {
        let columns = described.fields.iter().map(|field| field.type_oid);
        let oids: Vec<u32> = described
            .parameters
            .iter()
            .copied()
            .chain(columns)
            .collect();
        let types = self.resolve(task.dictionary, &oids, task.deadline).await?;
        let count = described.parameters.len();
        let mut shape = Shape::new(count, described.fields, types, generation);
        if let Some(pace) = task.dictionary.pace(task.bound, &task.login.role) {
            shape.pace = pace;
        }
        Ok(Arc::new(shape))
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
