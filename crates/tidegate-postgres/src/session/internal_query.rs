//! Runs internal queries, such as those for types and names, on a connection that is checked out.
//! The queries read `pg_catalog` only.

use std::io;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use tidegate_sql::Error;
use tidegate_values::RawRow;
use tidegate_wire::server_error::ServerError;
use tidegate_wire::tag;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::purity::FINGERPRINT_SQL;
use crate::statement::CallerSwitch;

pub(crate) struct InternalQuery<'a> {
    pub(crate) text: &'static str,
    /// The parameters of the query in text form.
    pub(crate) parameters: &'a [&'a str],
    /// The switch to the caller, if the connection needs one and no transaction is open.
    pub(crate) switch: Option<CallerSwitch<'a>>,
    /// Whether the query stays prepared. It must not stay prepared on a connection that runs texts
    /// of callers, because such a text could replace the prepared statement.
    pub(crate) is_kept: bool,
    pub(crate) deadline: Option<Instant>,
}

impl Connection {
    /// Runs an internal query, and passes each row to `take`. A row has `columns` binary values.
    ///
    /// The outer error is an error of the connection. The inner error is an error that PostgreSQL
    /// reported for the query.
    pub(crate) async fn run_internal_query(
        &mut self,
        query: &InternalQuery<'_>,
        columns: usize,
        take: &mut (dyn FnMut(RawRow<'_>) -> Option<()> + Send),
    ) -> Result<Result<(), ServerError>, Error> {
        self.begin_pipeline();
        self.push_prefix(None, query.switch)?;
        let name = self.push_query_parse(query)?;
        if let Err(error) = push_query(query, &name, &mut self.channel.outbound) {
            self.mark_closed();
            return Err(Error::internal(error));
        }
        self.sync();
        let mut outcome = Ok(());
        loop {
            match self.next(query.deadline).await? {
                tag::DATA_ROW => {
                    let row = RawRow::of_message(columns, self.channel.inbound.body());
                    if row.and_then(&mut *take).is_none() {
                        return Err(self.protocol_error("a row of pg_catalog that cannot be read"));
                    }
                }
                tag::ERROR_RESPONSE => {
                    outcome = Err(ServerError::read(self.channel.inbound.body()));
                }
                tag::READY_FOR_QUERY => {
                    self.ready_for_query()?;
                    if let Some(refusal) = self.session.prefix.refusal() {
                        outcome = Err(refusal);
                    }
                    if outcome.is_err() && query.is_kept {
                        self.forget_internal();
                    } else if outcome.is_err() {
                        // After the error PostgreSQL has skipped the Close, so it is queued again
                        // with the next pipeline.
                        self.session.statements.discard(&name);
                    }
                    return Ok(outcome);
                }
                _ => {}
            }
        }
    }

    /// Queues the Parse of an internal query unless it is already prepared. Returns the name of the
    /// prepared statement.
    fn push_query_parse(&mut self, query: &InternalQuery<'_>) -> Result<String, Error> {
        if query.is_kept {
            return self.prepared_internal(query.text);
        }
        // The query needs a name. The caller's statement may be the unnamed statement and is bound
        // later, so the query must not replace it.
        let name = self.session.statements.name();
        frontend::parse(&name, query.text, [], &mut self.channel.outbound)
            .map_err(Error::internal)?;
        Ok(name)
    }

    /// Reads the fingerprint of the definitions of the database; see [`FINGERPRINT_SQL`]. If
    /// `is_kept` is true, the query stays prepared on the connection.
    ///
    /// # Errors
    ///
    /// If the connection cannot be used, the deadline passes, or PostgreSQL reports an error.
    pub(crate) async fn fingerprint(
        &mut self,
        is_kept: bool,
        deadline: Instant,
    ) -> Result<String, Error> {
        let query = InternalQuery {
            text: FINGERPRINT_SQL,
            parameters: &[],
            switch: None,
            is_kept,
            deadline: Some(deadline),
        };
        let mut fingerprint = String::new();
        let mut take = |row: RawRow<'_>| {
            let text = row.values().next()??;
            str::from_utf8(text).ok()?.clone_into(&mut fingerprint);
            Some(())
        };
        let outcome = self.run_internal_query(&query, 1, &mut take).await?;
        outcome.map_err(|error| Error::Rejected(Box::new(error.rejection)))?;
        Ok(fingerprint)
    }
}

/// Queues the Bind and the Execute of a query, and the Close unless it stays prepared.
fn push_query(query: &InternalQuery<'_>, name: &str, out: &mut BytesMut) -> io::Result<()> {
    let encode = |value: &str, out: &mut BytesMut| {
        out.extend_from_slice(value.as_bytes());
        Ok(IsNull::No)
    };
    let parameters = query.parameters.iter().copied();
    frontend::bind("", name, [], parameters, encode, [1], out)
        .map_err(|_| io::Error::other("a parameter that cannot be sent"))?;
    frontend::execute("", 0, out)?;
    if !query.is_kept {
        frontend::close(b'S', name, out)?;
    }
    Ok(())
}
