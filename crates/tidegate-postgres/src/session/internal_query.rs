//! Internal queries on a connection that is checked out: types and names, in `pg_catalog` only.

use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use tidegate_sql::Error;
use tidegate_values::RawRow;
use tidegate_wire::rejection::ServerError;
use tidegate_wire::tag;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::statement::RoleSwitch;

pub(crate) struct InternalQuery<'a> {
    pub(crate) text: &'static str,
    /// Its parameters in text form.
    pub(crate) parameters: &'a [&'a str],
    /// The role to switch to, if the connection logged in as another role and no transaction is
    /// open.
    pub(crate) switch: Option<RoleSwitch<'a>>,
    pub(crate) deadline: Option<Instant>,
}

impl Connection {
    /// Runs an internal query and passes each row of `columns` binary values to `take`.
    ///
    /// The outer error is that of the connection, the inner one that of PostgreSQL.
    pub(crate) async fn run_internal_query(
        &mut self,
        lookup: &InternalQuery<'_>,
        columns: usize,
        take: &mut (dyn FnMut(RawRow<'_>) -> Option<()> + Send),
    ) -> Result<Result<(), ServerError>, Error> {
        self.begin_pipeline();
        self.push_prefix(None, lookup.switch)?;
        // Not the unnamed statement: the caller's statement may use that, and is bound later.
        let name = self.session.statements.name();
        let out = &mut self.channel.outbound;
        let sent = frontend::parse(&name, lookup.text, [], out).and_then(|()| {
            let value = |value: &str, out: &mut bytes::BytesMut| {
                out.extend_from_slice(value.as_bytes());
                Ok(IsNull::No)
            };
            frontend::bind(
                "",
                &name,
                [],
                lookup.parameters.iter().copied(),
                value,
                [1],
                out,
            )
            .map_err(|_| std::io::Error::other("a parameter that cannot be sent"))?;
            frontend::execute("", 0, out)?;
            frontend::close(b'S', &name, out)
        });
        if let Err(error) = sent {
            self.mark_closed();
            return Err(Error::internal(error));
        }
        self.sync();
        let mut outcome = Ok(());
        loop {
            match self.next(lookup.deadline).await? {
                tag::DATA_ROW => {
                    let values = self.channel.inbound.body().get(2..);
                    let row = values.and_then(|values| RawRow::new(columns, values));
                    if row.and_then(&mut *take).is_none() {
                        return Err(self.protocol_error("a row of pg_catalog that cannot be read"));
                    }
                }
                tag::ERROR_RESPONSE => {
                    outcome = Err(ServerError::read(self.channel.inbound.body()));
                }
                tag::READY_FOR_QUERY => {
                    self.ready_for_query()?;
                    if let Some(refusal) = self.refusal() {
                        outcome = Err(refusal);
                    }
                    if outcome.is_err() {
                        // PostgreSQL skipped the Close after the error.
                        self.session.statements.discard(&name);
                    }
                    return Ok(outcome);
                }
                _ => {}
            }
        }
    }
}
