//! Reads a stream to its end and counts its transactions. The stream consists of fixed messages;
//! `tidegate-capture` opens a stream on a database.

#![expect(clippy::print_stdout, reason = "the example's output")]

use std::collections::VecDeque;

use async_trait::async_trait;
use bytes::Bytes;
use tidegate_changelog::{
    Lineage, LogError, LogIdentity, LogMessage, LogPosition, LogResult, LogStream,
};

struct Fixed(Lineage, VecDeque<LogMessage>);

#[async_trait]
impl LogStream for Fixed {
    fn lineage(&self) -> &Lineage {
        &self.0
    }

    fn start(&self) -> LogPosition {
        LogPosition(0)
    }

    async fn next(&mut self, batch: &mut Vec<LogMessage>) -> LogResult<()> {
        let message = self.1.pop_front();
        batch.extend(message.clone());
        message.map(drop).ok_or(LogError::Gone)
    }

    fn confirm(&mut self, _: LogPosition) {}

    fn request_position(&mut self) {}
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let change = |kind: u8| LogMessage::Change(Bytes::from(vec![kind]));
    let transaction = [b'B', b'I', b'C'].map(change);
    let end = LogMessage::Reached(LogPosition(0x16_B374_D848));
    let messages = transaction.into_iter().chain([end]);
    let mut stream = Fixed(Lineage::new(LogIdentity(1)), messages.collect());
    let (mut batch, mut commits) = (Vec::new(), 0);
    while stream.next(&mut batch).await.is_ok() {
        for message in batch.drain(..) {
            match message {
                LogMessage::Change(bytes) => commits += u32::from(bytes.first() == Some(&b'C')),
                LogMessage::Reached(position) => println!("{commits} before {position}"),
            }
        }
    }
}
