//! Connections that PostgreSQL does not let go by itself, of a server that says whatever the test
//! wants. Time stands still once all have come.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_pool::{Key, OpenError, Pool, Settings};
use tidegate_postgres::{Credential, Credentials, RoleConnector, Roles};
use tidegate_sql::{BoxFuture, DatabaseName, Login, RoleName, RoleUse};
use tidegate_wire::backoff::Jitter;
use tidegate_wire::{Backend, Config, Secret, StartupPins, TerminateOutcome, Terminator, TlsMode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::stage::{Gathered, Sql};

const PROCESS: u8 = 77;

/// Lets everybody in, answers the first message with one that is none, and holds the stream until
/// it is told to end.
async fn babble(mut stream: TcpStream, end: Arc<Notify>) -> std::io::Result<()> {
    let length = stream.read_u32().await?;
    let mut startup = vec![0; usize::try_from(length).unwrap() - 4];
    stream.read_exact(&mut startup).await?;
    stream.write_all(b"R\0\0\0\x08\0\0\0\0").await?;
    stream
        .write_all(&[b'K', 0, 0, 0, 12, 0, 0, 0, PROCESS, 0, 0, 0, 1])
        .await?;
    stream.write_all(b"Z\0\0\0\x05I").await?;
    stream.read_u8().await?;
    stream.write_all(b"?\0\0\0\x04").await?;
    end.notified().await;
    Ok(())
}

/// The administrator, whose answers are given; after them the backend ends.
struct Administrator {
    answers: Mutex<Vec<TerminateOutcome>>,
    asked: Mutex<Vec<(Instant, Backend)>>,
    end: Arc<Notify>,
}

impl Terminator for Administrator {
    fn terminate(&self, backend: Backend) -> BoxFuture<'_, TerminateOutcome> {
        self.asked.lock().push((Instant::now(), backend));
        let mut answers = self.answers.lock();
        let fate = answers.remove(0);
        if answers.is_empty() && fate == TerminateOutcome::Requested {
            self.end.notify_one();
        }
        Box::pin(std::future::ready(fate))
    }
}

struct Anybody;

impl Credentials for Anybody {
    fn of<'a>(
        &'a self,
        _key: &'a Key,
        _shared: bool,
    ) -> BoxFuture<'a, Result<Credential, OpenError>> {
        let (password, pins) = (Secret::new("secret"), StartupPins::default());
        Box::pin(std::future::ready(Ok(Credential::new(password, pins))))
    }
}

/// After how many seconds the administrator was asked about a connection that broke the protocol,
/// until its place was free.
async fn asked(answers: &[TerminateOutcome]) -> Vec<u64> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://u:p@{}/d", listener.local_addr().unwrap());
    let config = Config::from_url(&url)
        .unwrap()
        .with_tls(TlsMode::Disable, None);
    let administrator = Arc::new(Administrator {
        answers: Mutex::new(answers.to_vec()),
        asked: Mutex::default(),
        end: Arc::default(),
    });
    let end = administrator.end.clone();
    tokio::spawn(async move { babble(listener.accept().await?.0, end).await });
    let connector = RoleConnector::new(Arc::new(config), Arc::new(Anybody), administrator.clone());
    let settings = Settings::default();
    let pool = Pool::new(connector, settings, Jitter::none());
    let roles = Roles::new(pool.clone());
    let login = Login {
        database: DatabaseName::new("shop"),
        role: RoleName::new("shop/ann"),
        role_use: RoleUse::User(1),
    };
    let sql = Sql::new("select 1").set([]);
    let mut rows = Gathered::default();
    let ran = roles.query(&login, &sql.bound, sql.options(), &mut rows);
    ran.await.unwrap_err();
    assert_eq!(pool.stats().roles[0].leaving, 1);
    tokio::time::pause();
    let began = Instant::now();
    while pool.stats().held > 0 {
        assert!(began.elapsed() < Duration::from_hours(1), "held for ever");
        sleep(Duration::from_secs(1)).await;
    }
    let asked = administrator.asked.lock();
    for (_, backend) in &*asked {
        assert_eq!(backend.role, login.role);
        assert_eq!(backend.process_id, i32::from(PROCESS));
    }
    let half = Duration::from_millis(500);
    let after = |at: &Instant| (at.duration_since(began) + half).as_secs();
    asked.iter().map(|(at, _)| after(at)).collect()
}

#[tokio::test]
async fn a_backend_that_nobody_has_told_to_end_is_told_until_it_does() {
    assert_eq!(
        asked(&[
            TerminateOutcome::Unknown,
            TerminateOutcome::Requested,
            TerminateOutcome::Requested
        ])
        .await,
        [2, 7, 37]
    );
}

/// As after a failover: the other side's host is away without a word.
#[tokio::test]
async fn a_backend_that_is_gone_is_not_waited_for() {
    assert_eq!(
        asked(&[TerminateOutcome::Requested, TerminateOutcome::Gone]).await,
        [2, 32]
    );
}
