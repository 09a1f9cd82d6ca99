//! The end of a transaction, and descriptions without an end.

use tidegate_sql::{DatabaseError, Description, Error};
use tidegate_wire::rejection::ServerError;
use tidegate_wire::{body, is_outage_of_statement, outage, tag};
use tokio::time::Instant;

use super::reset::Residue;
use super::task::{Failure, Place, RunError, Task};
use crate::connection::{Connection, TransactionStatus};

impl Connection {
    /// Commits, and sends the reset behind it. Deferred constraints speak here.
    pub(crate) async fn commit(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        self.simple("COMMIT");
        if self.session.residue().is_reset_due() {
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
                _ => return Err(self.breach("COMMIT was answered by something else")),
            }
        }
        self.ready_for_query()?;
        match failure {
            Some(error) if is_outage_of_statement(&error.rejection.sqlstate) => {
                Err(outage(error.rejection))
            }
            Some(error) => Err(Error::Rejected(Box::new(error.rejection))),
            None if self.session.transaction() != TransactionStatus::Idle => {
                Err(self.breach("a transaction stayed open behind its COMMIT"))
            }
            None if committed => Ok(()),
            // A failed transaction is rolled back by COMMIT.
            None => Err(Error::Rejected(Box::new(DatabaseError {
                sqlstate: "25P02".to_owned(),
                message: "the transaction had failed before and was rolled back".to_owned(),
                ..DatabaseError::default()
            }))),
        }
    }

    /// Parses and describes a statement; nothing runs.
    pub(crate) async fn describe_only(&mut self, task: &Task<'_>) -> Result<Description, RunError> {
        let prepared = match self.prepare(task).await {
            Ok(prepared) => prepared,
            Err(Failure::Final(error)) => return Err(self.run_error(error)),
            Err(Failure::Stale(error)) => return Err(self.rejected(*error, task.bound).into()),
        };
        // The input functions of literals have run, and they may be anybody's.
        if !task.is_kept() && task.place == Place::Alone {
            self.session.leave(Residue::Everything);
        }
        let shape = &prepared.shape;
        Ok(Description {
            parameters: shape.parameters.clone(),
            columns: shape.columns.clone(),
        })
    }
}
