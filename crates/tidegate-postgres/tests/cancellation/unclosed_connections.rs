//! Connections that PostgreSQL does not close by itself, against a scripted server. Time is paused
//! once all connections are open.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_pool::{OpenError, Pool, PoolKey, Settings};
use tidegate_postgres::{Credential, Credentials, RoleConnector, UserExecutor};
use tidegate_sql::{BoxFuture, DatabaseName, Login, RoleName, RoleUse};
use tidegate_wire::backoff::Jitter;
use tidegate_wire::{
    Backend, BackendTerminator, Config, Secret, StartupParameters, TerminateOutcome, TlsMode,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::fixture::{CollectedRows, Sql};

const PROCESS: u8 = 77;

/// Accepts any login, answers the first message with an invalid one, and keeps the stream open
/// until notified.
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

/// An administrator that gives scripted answers, one for each request. After the last answer the
/// backend ends.
struct Administrator {
    responses: Mutex<Vec<TerminateOutcome>>,
    asked: Mutex<Vec<(Instant, Backend)>>,
    end: Arc<Notify>,
}

impl BackendTerminator for Administrator {
    fn terminate(&self, backend: Backend) -> BoxFuture<'_, TerminateOutcome> {
        self.asked.lock().push((Instant::now(), backend));
        let mut responses = self.responses.lock();
        let fate = responses.remove(0);
        if responses.is_empty() && fate == TerminateOutcome::Requested {
            self.end.notify_one();
        }
        Box::pin(std::future::ready(fate))
    }
}

struct AnyLogin;

impl Credentials for AnyLogin {
    fn of<'a>(
        &'a self,
        _key: &'a PoolKey,
        _shared: bool,
    ) -> BoxFuture<'a, Result<Credential, OpenError>> {
        let (password, startup) = (Secret::new("secret"), StartupParameters::default());
        Box::pin(std::future::ready(Ok(Credential::new(password, startup))))
    }
}

/// Returns the seconds after which the administrator was asked to terminate the backend of a
/// connection that broke the protocol, until the connection's slot was free.
async fn asked(responses: &[TerminateOutcome]) -> Vec<u64> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://u:p@{}/d", listener.local_addr().unwrap());
    let config = Config::from_url(&url)
        .unwrap()
        .with_tls(TlsMode::Disable, None);
    let administrator = Arc::new(Administrator {
        responses: Mutex::new(responses.to_vec()),
        asked: Mutex::default(),
        end: Arc::default(),
    });
    let end = administrator.end.clone();
    tokio::spawn(async move { babble(listener.accept().await?.0, end).await });
    let connector = RoleConnector::new(Arc::new(config), Arc::new(AnyLogin), administrator.clone());
    let settings = Settings::default();
    let pool = Pool::new(connector, settings, Jitter::none());
    let roles = UserExecutor::new(pool.clone());
    let login = Login {
        database: DatabaseName::new("shop"),
        role: RoleName::new("shop/ann"),
        role_use: RoleUse::User(1),
    };
    let sql = Sql::new("select 1").set([]);
    let mut rows = CollectedRows::default();
    let ran = roles.query(&login, &sql.bound, sql.options(), &mut rows);
    ran.await.unwrap_err();
    assert_eq!(pool.stats().roles[0].closing, 1);
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
async fn a_termination_is_repeated_until_the_backend_is_gone() {
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

/// A failover has this effect: the server's host disappeared without closing the connection.
#[tokio::test]
async fn a_backend_that_is_gone_is_not_waited_for() {
    assert_eq!(
        asked(&[TerminateOutcome::Requested, TerminateOutcome::Gone]).await,
        [2, 32]
    );
}
