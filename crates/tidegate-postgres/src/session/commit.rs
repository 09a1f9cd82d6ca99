//! Commits a transaction.

use tidegate_sql::{DatabaseError, Error};
use tidegate_wire::server_error::ServerError;
use tidegate_wire::{body, is_outage_of_statement, outage, tag};
use tokio::time::Instant;

use crate::connection::{Connection, TransactionStatus};

impl Connection {
    /// Commits the transaction. Deferred constraints are checked at the COMMIT, so it may fail. If
    /// a reset is due, it is queued after the COMMIT.
    pub(crate) async fn commit(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        self.push_simple("COMMIT");
        if self.session.side_effects().is_reset_due() {
            self.push_reset();
        }
        let (mut committed, mut failure) = (false, None);
        loop {
            match self.next(deadline).await? {
                tag::COMMAND_COMPLETE => {
                    committed = body::command_tag(self.channel.inbound.body()).0 == "COMMIT";
                }
                tag::ERROR_RESPONSE => {
                    failure = Some(ServerError::read(self.channel.inbound.body()));
                }
                tag::READY_FOR_QUERY => break,
                _ => return Err(self.protocol_error("COMMIT was answered by something else")),
            }
        }
        self.ready_for_query()?;
        match failure {
            Some(error) if is_outage_of_statement(&error.rejection.sqlstate) => {
                Err(outage(error.rejection))
            }
            Some(error) => Err(Error::Rejected(Box::new(error.rejection))),
            None if self.session.transaction() != TransactionStatus::Idle => {
                Err(self.protocol_error("a transaction stayed open after its COMMIT"))
            }
            None if committed => Ok(()),
            // PostgreSQL responds to the COMMIT of a failed transaction with `ROLLBACK` and no
            // error. The caller must not mistake this for a success, so it gets this error.
            None => Err(Error::Rejected(Box::new(DatabaseError {
                sqlstate: "25P02".to_owned(),
                message: "the transaction had failed before and was rolled back".to_owned(),
                ..DatabaseError::default()
            }))),
        }
    }
}
