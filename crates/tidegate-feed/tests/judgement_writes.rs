//! Judgements of a row for many members share writes to PostgreSQL.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_pool::Settings;
use tidegate_sql::Executor;
use tidegate_wire::{Target, TlsMode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::time::Instant;

use crate::fixture::{Fixture, Setup, config, node_with};
use crate::member_batches::listeners;
use crate::members::prepare;

/// A text in the rows that are judged, so that it is in each statement that judges one.
const MARK: &str = "the row to be judged";
/// The deadline for what the test waits for.
const SOON: Duration = Duration::from_secs(30);

/// For each write to PostgreSQL with the mark, how many times it contains the mark.
#[derive(Clone, Default)]
struct WriteLog(Arc<Mutex<Vec<usize>>>);

impl WriteLog {
    fn add(&self, written: &[u8]) {
        let marks = written.windows(MARK.len());
        let count = marks.filter(|part| *part == MARK.as_bytes()).count();
        if count > 0 {
            self.0.lock().push(count);
        }
    }

    /// Returns and clears the log.
    fn take(&self) -> Vec<usize> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// An executor behind a proxy that logs what the executor writes.
async fn logged_executor(setup: &Setup, log: WriteLog) -> Arc<dyn Executor> {
    let mut config = config(setup).with_tls(TlsMode::Disable, None);
    let [Target::Unix { directory, port }] = &*config.targets else {
        panic!("{:?}", config.targets);
    };
    let socket = directory.join(format!(".s.PGSQL.{port}"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    config.targets = vec![Target::Tcp {
        host: "127.0.0.1".to_owned(),
        port: listener.local_addr().unwrap().port(),
    }];
    tokio::spawn(accept(listener, socket, log));
    let executor = tidegate_testkit::executor_with(setup.cluster, config, Settings::default());
    Arc::new(executor)
}

async fn accept(listener: TcpListener, socket: PathBuf, log: WriteLog) {
    while let Ok((client, _)) = listener.accept().await {
        let server = UnixStream::connect(&socket).await.unwrap();
        tokio::spawn(forward(client, server, log.clone()));
    }
}

async fn forward(client: TcpStream, server: UnixStream, log: WriteLog) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
        log.add(&buffer[..read]);
        if to_server.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn judgements_of_a_row_for_many_members_share_writes() {
    const MEMBERS: usize = 32;
    let setup = Setup::without_polls();
    let mut fixture = Fixture::with("feed_judgement_writes", &setup).await;
    prepare(&mut fixture).await;
    let log = WriteLog::default();
    fixture.feed = node_with(&setup, logged_executor(&setup, log.clone()).await);
    // PostgreSQL has to evaluate this policy for each member, and all members see the rows.
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY p ON t USING (length(a) > length((SELECT tidegate.user_id())))",
        )
        .await;
    let mut listeners = listeners(&fixture, "t", MEMBERS).await;
    let deadline = Instant::now() + SOON;
    // The first judgements run on connections of their own, one in each write.
    for id in 0.. {
        let insert = format!("INSERT INTO t VALUES ({id}, '{MARK}')");
        fixture.run(&insert).await;
        for listener in &mut listeners {
            assert_eq!(listener.event().await, format!("+{{\"id\":{id}}}"));
        }
        let writes = log.take();
        let judgements: usize = writes.iter().sum();
        if judgements >= MEMBERS && writes.len() * 2 <= judgements {
            return;
        }
        assert!(Instant::now() < deadline, "judgements by write: {writes:?}");
    }
}
