//! A database with its tasks: listening to the bus, asking the reader, and becoming the reader.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::select;
use tidegate_sql::DatabaseName;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::database::Database;
use crate::election;
use crate::seal::SealedKind;
use crate::shared::SharedBus;

/// The interval at which a node that is not the reader reports that it uses the database.
const PRESENCE_INTERVAL: Duration = Duration::from_secs(1);
/// The minimum time between two questions to the reader.
const QUESTION_INTERVAL: Duration = Duration::from_millis(5);

/// A database with its tasks. Dropping it stops the tasks.
pub(crate) struct Joined {
    pub(crate) database: Arc<Database>,
    _tasks: JoinSet<()>,
}

impl Joined {
    pub(crate) fn new(name: DatabaseName, shared: Arc<SharedBus>) -> Self {
        let database = Arc::new(Database::new(name, shared));
        let mut tasks = JoinSet::new();
        tasks.spawn(listen(database.clone()));
        tasks.spawn(ask(database.clone()));
        tasks.spawn(election::run(database.clone()));
        Self {
            database,
            _tasks: tasks,
        }
    }
}

/// Receives the messages of the other nodes.
async fn listen(database: Arc<Database>) {
    loop {
        let nats = database.shared.first_connection().await;
        let live = nats.subscribe(format!("{}.p", database.subject)).await;
        let questions = nats.subscribe(format!("{}.q", database.subject)).await;
        if let (Ok(live), Ok(questions)) = (live, questions) {
            let mut messages = select(live, questions);
            while let Some(message) = messages.next().await {
                // A message that cannot be read is ignored. `receive` counts those that cannot be
                // decrypted.
                let _ = database.receive(&message);
            }
        }
        sleep(PRESENCE_INTERVAL).await;
    }
}

/// Asks the reader for its position when a stream of this node needs it. Otherwise reports, once in
/// [`PRESENCE_INTERVAL`], that this node uses the database.
async fn ask(database: Arc<Database>) {
    loop {
        let wanted = timeout(PRESENCE_INTERVAL, database.wanted.notified())
            .await
            .is_ok();
        if database.reads.load(Ordering::Relaxed) {
            if wanted {
                database.asked.notify_one();
            }
            continue;
        }
        if let Some(nats) = database.shared.connected() {
            let question: &[u8] = if wanted { b"?" } else { b"" };
            let seal = &database.shared.seal;
            let sealed = seal.seal(&database.name, SealedKind::Question, question);
            nats.publish(format!("{}.q", database.subject), sealed)
                .await;
        }
        sleep(QUESTION_INTERVAL).await;
    }
}
