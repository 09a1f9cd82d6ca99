//! TLS to PostgreSQL, with each `sslmode`.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidegate_embedded::Cluster;
use tidegate_pool::Settings;
use tidegate_postgres::Connection;
use tidegate_sql::Error;
use tidegate_wire::{Config, ConnectError, Target, TlsMode};

use crate::fixture::{Fixture, Sql, connect, password, startup};

/// A cluster with a certificate for `localhost`, and the path of the certificate.
async fn cluster() -> (&'static Cluster, PathBuf) {
    let cluster = Cluster::start(tidegate_embedded::testing::settings())
        .await
        .unwrap();
    let cluster: &'static Cluster = Box::leak(Box::new(cluster));
    let admin = connect(&cluster.url("postgres")).await;
    let row = admin.query_one("SHOW data_directory", &[]).await.unwrap();
    let directory = PathBuf::from(row.get::<_, String>(0));
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = directory.join("server.crt");
    write(&certificate, &made.cert.pem());
    write(
        &directory.join("server.key"),
        &made.signing_key.serialize_pem(),
    );
    admin
        .batch_execute("ALTER SYSTEM SET ssl = on")
        .await
        .unwrap();
    admin
        .batch_execute("SELECT pg_reload_conf()")
        .await
        .unwrap();
    let ssl = async || {
        let admin = connect(&cluster.url("postgres")).await;
        admin
            .query_one("SHOW ssl", &[])
            .await
            .unwrap()
            .get::<_, String>(0)
    };
    while ssl().await != "on" {
        tokio::task::yield_now().await;
    }
    (cluster, certificate)
}

/// Writes a file with the owner of its directory, as which PostgreSQL runs.
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    let owner = std::fs::metadata(path.parent().unwrap()).unwrap();
    chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn config(cluster: &Cluster, host: &str, mode: TlsMode, root: Option<&Path>) -> Config {
    let mut config = Config::from_url(&cluster.url("postgres"))
        .unwrap()
        .with_tls(mode, root);
    config.targets = vec![Target::Tcp {
        host: host.to_owned(),
        port: cluster.port(),
    }];
    config
}

async fn open(config: &Config) -> Result<Connection, ConnectError> {
    Connection::open(
        config,
        "secured",
        "secured",
        &password("secured"),
        &startup(),
    )
    .await
}

#[tokio::test]
async fn the_mode_decides_what_is_encrypted_and_what_is_verified() {
    let (cluster, certificate) = cluster().await;
    let fixture = Fixture::on(cluster, "secured", Settings::default()).await;
    let root = Some(certificate.as_path());
    let other = certificate.with_file_name("other.crt");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    write(&other, &made.cert.pem());

    for (host, mode, root, encrypted) in [
        ("localhost", TlsMode::Disable, None, false),
        ("localhost", TlsMode::Prefer, None, true),
        ("127.0.0.1", TlsMode::Require, None, true),
        ("127.0.0.1", TlsMode::Require, root, true),
        ("127.0.0.1", TlsMode::VerifyCa, root, true),
        ("localhost", TlsMode::VerifyFull, root, true),
    ] {
        let connection = open(&config(cluster, host, mode, root)).await.unwrap();
        let query = "SELECT ssl::text FROM pg_stat_ssl WHERE pid = $1";
        let process = connection.backend().process_id;
        let row = fixture.admin.query_one(query, &[&process]).await.unwrap();
        assert_eq!(
            row.get::<_, String>(0),
            encrypted.to_string(),
            "{host} {mode:?}"
        );
    }
    let other = Some(other.as_path());
    for (host, mode, root) in [
        ("127.0.0.1", TlsMode::VerifyFull, root),
        ("localhost", TlsMode::VerifyFull, other),
        ("localhost", TlsMode::VerifyCa, other),
        ("localhost", TlsMode::Require, other),
        (
            "localhost",
            TlsMode::VerifyFull,
            Some(Path::new("/nowhere/root.crt")),
        ),
    ] {
        let refused = open(&config(cluster, host, mode, root)).await;
        assert!(
            matches!(refused, Err(ConnectError::Tls(_))),
            "{host} {mode:?} {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_required() {
    let cluster = tidegate_embedded::testing::cluster();
    let refused = open(&config(cluster, "localhost", TlsMode::Require, None)).await;
    assert!(matches!(refused, Err(ConnectError::Tls(_))), "{refused:?}");
}

#[tokio::test]
async fn statements_and_their_cancellation_go_through_tls() {
    let (cluster, certificate) = cluster().await;
    let config = config(
        cluster,
        "localhost",
        TlsMode::VerifyFull,
        Some(&certificate),
    );
    let fixture = Arc::new(Fixture::at(cluster, "encrypted", Settings::default(), config).await);
    let owner = fixture.owner();
    let long = Sql::new("select repeat('x', 5000000) as long")
        .value(&fixture, &owner)
        .await;
    assert_eq!(long.len(), 5_000_002);
    let mut sets = Sql::new("select length(:t::text)");
    let text = format!("\"{}\"", "y".repeat(1000));
    for _ in 0..3000 {
        sets = sets.set([&text]);
    }
    assert_eq!(sets.run(&fixture, &owner).await.unwrap().values.len(), 3000);
    let sleep = Sql::new("select pg_sleep(60) as overdue").within(Duration::from_millis(200));
    let error = sleep.run(&fixture, &owner).await.unwrap_err();
    assert!(matches!(error, Error::Deadline), "{error:?}");
    assert_eq!(fixture.running("overdue").await, 0);
}
