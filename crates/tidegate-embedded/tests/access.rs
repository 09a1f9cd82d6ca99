//! Tests logins, and the state of a new cluster.

use tidegate_embedded::testing;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, NoTls};

use crate::scratch::{connect, text};

#[tokio::test]
async fn the_password_opens_tcp_and_the_socket() {
    let cluster = testing::cluster();
    for url in [cluster.admin_url(), cluster.socket_url("postgres")] {
        let client = connect(&url).await.unwrap();
        assert_eq!(
            text(&client, "select current_user::text").await.unwrap(),
            "postgres"
        );
        let version = text(&client, "show server_version").await.unwrap();
        assert!(
            version.starts_with(&cluster.version().to_string()),
            "{version}"
        );
    }
}

async fn refusal(password: &str) -> Vec<Option<SqlState>> {
    let cluster = testing::cluster();
    let mut refused = Vec::new();
    for url in [cluster.admin_url(), cluster.socket_url("postgres")] {
        let mut config: Config = url.parse().unwrap();
        config.password(password);
        let error = config.connect(NoTls).await.err().unwrap();
        refused.push(error.code().cloned());
    }
    refused
}

#[tokio::test]
async fn a_wrong_password_is_refused_over_tcp_and_the_socket() {
    let wrong = Some(SqlState::INVALID_PASSWORD);
    assert_eq!(refusal("wrong").await, [wrong.clone(), wrong]);
}

#[tokio::test]
async fn a_login_without_a_password_fails() {
    let cluster = testing::cluster();
    let [tcp, socket] = [cluster.admin_url(), cluster.socket_url("postgres")]
        .map(|url| url.replace(&format!(":{}@", cluster.admin_password()), "@"));
    for url in [tcp, socket] {
        let error = connect(&url).await.expect_err("the connection is refused");
        // The server requests a password, and the client has none.
        assert!(
            format!("{error:?}").contains("password missing"),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn the_server_requires_passwords_and_listens_on_loopback_only() {
    let client = connect(&testing::cluster().admin_url()).await.unwrap();
    let rules = "select count(*) || ' ' || string_agg(distinct auth_method, ',')
        || ' ' || string_agg(distinct address, ',') from pg_hba_file_rules";
    assert_eq!(
        text(&client, rules).await.unwrap(),
        "4 scram-sha-256 127.0.0.1"
    );
    for (setting, value) in [
        ("listen_addresses", "127.0.0.1"),
        ("password_encryption", "scram-sha-256"),
        ("wal_level", "logical"),
        ("server_encoding", "UTF8"),
        ("TimeZone", "UTC"),
        ("max_connections", "300"),
    ] {
        assert_eq!(
            text(&client, &format!("show {setting}")).await.unwrap(),
            value,
            "{setting}"
        );
    }
    let locale = "select datcollate::text from pg_database where datname = 'template0'";
    assert_eq!(text(&client, locale).await.unwrap(), "C");
}

#[tokio::test]
async fn the_administrators_verifier_is_scram() {
    let client = connect(&testing::cluster().admin_url()).await.unwrap();
    let verifier = "select rolpassword from pg_authid where rolname = 'postgres'";
    assert!(
        text(&client, verifier)
            .await
            .unwrap()
            .starts_with("SCRAM-SHA-256$")
    );
}

#[tokio::test]
async fn two_clusters_run_side_by_side() {
    let other = tidegate_embedded::Cluster::start(testing::settings())
        .await
        .unwrap();
    let shared = testing::cluster();
    assert_ne!(other.port(), shared.port());
    assert_ne!(other.admin_password(), shared.admin_password());
    let own = connect(&other.admin_url()).await.unwrap();
    let port = text(&own, "show port").await.unwrap();
    assert_eq!(port, other.port().to_string());
    other.stop().await.unwrap();
}

#[test]
fn the_password_is_not_in_the_debug_text() {
    let cluster = testing::cluster();
    let text = format!("{cluster:?}");
    assert!(
        text.contains("port") && !text.contains(cluster.admin_password()),
        "{text}"
    );
}
