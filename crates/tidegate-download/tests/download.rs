//! Which archives are unpacked, and which are refused without leaving files.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;
use tidegate_download::{Error, Package, Progress, Source};

use crate::registry::{Registry, archive, sha512};

const LINKS: &str = r#"[{"source":"native/lib/libpq.so.5.17","target":"native/lib/libpq.so.5"}]"#;

fn server() -> Vec<u8> {
    archive(&[
        ("package/package.json", 0o644, "{}"),
        ("package/native/bin/postgres", 0o755, "#!/bin/sh\n"),
        ("package/native/lib/libpq.so.5.17", 0o644, "library"),
        ("package/native/lib/libpq.a", 0o644, "static"),
        ("package/native/lib/postgresql/pgxs/Makefile", 0o644, "make"),
        (
            "package/native/share/postgresql/errcodes.txt",
            0o644,
            "codes",
        ),
        ("package/native/../../../escaped", 0o644, "outside"),
        ("package/native/pg-symlinks.json", 0o644, LINKS),
    ])
}

fn package(sha512: &str) -> Package<'_> {
    Package {
        name: "test",
        version: "17.1.0-beta.1",
        postgresql: "17.1",
        sha512,
    }
}

async fn download(registry: &Registry, sha512: &str, cache: &Path) -> Result<Vec<Progress>, Error> {
    // As the binary does.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let source = Source {
        registry: &registry.url,
        package: package(sha512),
        cache,
    };
    let mut progress = Vec::new();
    source.download(|now| progress.push(now)).await?;
    Ok(progress)
}

fn files(cache: &Path) -> usize {
    cache.read_dir().map_or(0, Iterator::count)
}

#[tokio::test]
async fn the_programs_are_unpacked_for_every_user() {
    let (bytes, folder) = (server(), TempDir::new().unwrap());
    let (registry, cache) = (Registry::having(&bytes), folder.path().join("new/cache"));
    let sum = sha512(&bytes);
    assert_eq!(package(&sum).installed(&cache), None);
    let progress = download(&registry, &sum, &cache).await.unwrap();
    let all = bytes.len() as u64;
    let end = Progress {
        received: all,
        total: Some(all),
    };
    assert_eq!(progress.last(), Some(&end));

    let root = cache.join("postgresql-17.1");
    assert_eq!(package(&sum).installed(&cache), Some(root.join("bin")));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&root.join("bin/postgres")), 0o755);
    for folder in [&cache, &root, &root.join("share/postgresql")] {
        assert_eq!(mode(folder), 0o755, "{}", folder.display());
    }
    let link = std::fs::read_link(root.join("lib/libpq.so.5")).unwrap();
    assert_eq!(link, Path::new("libpq.so.5.17"));
    for left_out in ["lib/libpq.a", "lib/postgresql/pgxs", "package.json"] {
        assert!(!root.join(left_out).exists(), "{left_out}");
    }
    for escaped in ["escaped", "new/escaped", "new/cache/escaped"] {
        assert!(!folder.path().join(escaped).exists(), "{escaped}");
    }
    assert_eq!(files(&cache), 1);
}

#[tokio::test]
async fn a_second_download_at_the_same_time_does_no_harm() {
    let (bytes, folder) = (server(), TempDir::new().unwrap());
    let (registry, sum) = (Registry::having(&bytes), sha512(&bytes));
    download(&registry, &sum, folder.path()).await.unwrap();
    download(&registry, &sum, folder.path()).await.unwrap();
    assert_eq!((registry.requests(), files(folder.path())), (2, 1));
}

#[tokio::test]
async fn another_archive_is_refused_and_nothing_is_written() {
    let folder = TempDir::new().unwrap();
    let registry = Registry::having(&server());
    let refused = download(&registry, &sha512(b"another"), folder.path()).await;
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains(&sha512(b"another")) && said.contains(&registry.url),
        "{said}"
    );
    assert_eq!(files(folder.path()), 0);
}

#[tokio::test]
async fn a_broken_connection_and_a_missing_archive_are_reported_with_the_address() {
    let bytes = server();
    let sum = sha512(&bytes);
    let cut = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\nhalf",
        bytes.len()
    );
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    for (answer, part) in [
        (cut.as_str(), "cannot download"),
        (missing, "404 Not Found"),
    ] {
        let (registry, folder) = (
            Registry::answering(answer.as_bytes().to_vec()),
            TempDir::new().unwrap(),
        );
        let said = download(&registry, &sum, folder.path()).await.unwrap_err();
        let said = said.to_string();
        let url = format!(
            "{}@embedded-postgres/test/-/test-17.1.0-beta.1.tgz",
            registry.url
        );
        assert!(said.contains(part) && said.contains(&url), "{said}");
        assert_eq!(files(folder.path()), 0);
    }
}

#[tokio::test]
async fn an_archive_that_cannot_be_read_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let registry = Registry::having(b"no archive");
    let refused = download(&registry, &sha512(b"no archive"), folder.path()).await;
    assert!(matches!(refused, Err(Error::Unpack { .. })), "{refused:?}");
    assert_eq!(files(folder.path()), 0);
}
