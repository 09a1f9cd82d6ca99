//! Tests the directories of clusters, and what remains of them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use tidegate_embedded::{Cluster, DataDir, Error, Settings, testing};

use crate::scratch::{Scratch, UNPRIVILEGED_UID, connect, entries, eventually, is_root, text};

fn temporary_in(scratch: &Scratch) -> Settings {
    Settings {
        scratch_dir: scratch.path().to_owned(),
        ..testing::settings()
    }
}

#[tokio::test]
async fn a_temporary_directory_is_gone_after_stop_and_after_drop() {
    let scratch = Scratch::new();
    for by_drop in [false, true] {
        let cluster = Cluster::start(temporary_in(&scratch)).await.unwrap();
        let directory = cluster.data_dir().to_owned();
        assert!(directory.starts_with(scratch.path()) && directory.join("data").is_dir());
        if by_drop {
            drop(cluster);
        } else {
            cluster.stop().await.unwrap();
        }
        assert!(scratch.entries().is_empty(), "{:?}", scratch.entries());
    }
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_nothing_behind() {
    let scratch = Scratch::new();
    {
        let mut start = std::pin::pin!(Cluster::start(temporary_in(&scratch)));
        while scratch
            .entries()
            .iter()
            .all(|name| !scratch.path().join(name).join("data.new").exists())
        {
            let short = std::time::Duration::from_millis(1);
            let ended = tokio::time::timeout(short, &mut start).await;
            assert!(ended.is_err(), "initdb takes longer than that");
        }
    }
    eventually("the folder is empty", || scratch.entries().is_empty());
}

#[tokio::test]
async fn data_and_password_outlive_a_kept_clusters_process() {
    let scratch = Scratch::new();
    let first = Cluster::start(scratch.persistent("new/deep/cluster"))
        .await
        .unwrap();
    let client = connect(&first.admin_url()).await.unwrap();
    client
        .batch_execute("create table kept as select 'still here' as word")
        .await
        .unwrap();
    let (password, directory) = (
        first.admin_password().to_owned(),
        first.data_dir().to_owned(),
    );
    first.stop().await.unwrap();

    let mode = fs::metadata(directory.join("password"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let began = std::time::Instant::now();
    let second = Cluster::start(scratch.persistent("new/deep/cluster"))
        .await
        .unwrap();
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    assert_eq!(second.admin_password(), password);
    let client = connect(&second.socket_url("postgres")).await.unwrap();
    assert_eq!(
        text(&client, "select word from kept").await.unwrap(),
        "still here"
    );
    assert_eq!(text(&client, "show fsync").await.unwrap(), "on");
}

#[tokio::test]
async fn a_second_cluster_in_a_directory_gets_the_id_of_the_first() {
    let scratch = Scratch::new();
    let first = Cluster::start(scratch.persistent("cluster")).await.unwrap();
    let error = Cluster::start(scratch.persistent("cluster"))
        .await
        .unwrap_err();
    let pid = std::process::id();
    assert!(
        matches!(&error, Error::InUse { pid: Some(it), .. } if *it == pid),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains(&first.data_dir().display().to_string()),
        "{error}"
    );
    let client = connect(&first.admin_url()).await.unwrap();
    assert_eq!(
        text(&client, "select 'untouched'").await.unwrap(),
        "untouched"
    );
}

#[tokio::test]
async fn a_directory_that_we_did_not_make_is_left_alone() {
    let scratch = Scratch::new();
    let foreign = scratch.path().join("foreign");
    fs::create_dir_all(foreign.join("data")).unwrap();
    fs::set_permissions(&foreign, Permissions::from_mode(0o750)).unwrap();
    fs::write(foreign.join("data/PG_VERSION"), "15\n").unwrap();
    let error = Cluster::start(scratch.persistent("foreign"))
        .await
        .unwrap_err();
    assert!(matches!(&error, Error::ForeignDirectory { .. }), "{error}");
    assert_eq!(entries(&foreign), ["data"]);
    assert_eq!(entries(&foreign.join("data")), ["PG_VERSION"]);
    assert_eq!(
        fs::metadata(&foreign).unwrap().permissions().mode() & 0o777,
        0o750
    );
}

#[tokio::test]
async fn an_empty_directory_is_accepted() {
    let scratch = Scratch::new();
    let empty = scratch.path().join("empty");
    fs::create_dir(&empty).unwrap();
    if is_root(&scratch) {
        chown(&empty, Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).unwrap();
    }
    let cluster = Cluster::start(scratch.persistent("empty")).await.unwrap();
    connect(&cluster.admin_url()).await.unwrap();
}

#[tokio::test]
async fn only_a_stopped_cluster_can_be_removed() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("cluster");
    Cluster::remove(scratch.persistent("cluster"))
        .await
        .unwrap();
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("precious"), "").unwrap();
    let error = Cluster::remove(scratch.persistent("cluster"))
        .await
        .unwrap_err();
    assert!(matches!(&error, Error::ForeignDirectory { .. }), "{error}");
    fs::remove_file(directory.join("precious")).unwrap();

    let cluster = Cluster::start(scratch.persistent("cluster")).await.unwrap();
    let error = Cluster::remove(scratch.persistent("cluster"))
        .await
        .unwrap_err();
    assert!(matches!(&error, Error::InUse { .. }), "{error}");
    cluster.stop().await.unwrap();
    // The cluster can be removed even if the binaries of its version are no longer installed.
    fs::write(directory.join("data/PG_VERSION"), "13\n").unwrap();
    Cluster::remove(scratch.persistent("cluster"))
        .await
        .unwrap();
    assert!(!directory.exists());
}

#[tokio::test]
async fn an_incomplete_cluster_is_created_again() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("cluster");
    fs::create_dir_all(directory.join("data.new/base")).unwrap();
    fs::write(directory.join("tidegate-cluster"), "").unwrap();
    fs::write(directory.join("password"), "of the first attempt").unwrap();
    let cluster = Cluster::start(scratch.persistent("cluster")).await.unwrap();
    connect(&cluster.admin_url()).await.unwrap();
    assert!(!directory.join("data.new").exists());
}

#[tokio::test]
async fn a_long_path_gets_its_socket_in_the_scratch_directory() {
    let scratch = Scratch::new();
    let long = format!("it's/{}, \"quoted\"", "long".repeat(25));
    let settings = Settings {
        scratch_dir: scratch.path().to_owned(),
        ..scratch.persistent(&long)
    };
    let cluster = Cluster::start(settings).await.unwrap();
    let socket_dir = cluster.socket_dir().to_owned();
    assert_eq!(socket_dir.parent(), Some(scratch.path()));
    let mode = fs::metadata(&socket_dir).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let client = connect(&cluster.socket_url("postgres")).await.unwrap();
    assert_eq!(text(&client, "select 'here'").await.unwrap(), "here");
    cluster.stop().await.unwrap();
    assert_eq!(scratch.entries(), ["it's"], "only the data is kept");
}

#[tokio::test]
async fn a_scratch_folder_with_a_long_path_is_refused() {
    let scratch = Scratch::new();
    let long = scratch.path().join("long".repeat(25));
    fs::create_dir(&long).unwrap();
    let settings = Settings {
        scratch_dir: long.clone(),
        ..testing::settings()
    };
    let error = Cluster::start(settings).await.unwrap_err();
    assert!(
        matches!(
            &error,
            Error::SocketPathTooLong {
                limit: 103 | 107,
                ..
            }
        ),
        "{error}"
    );
    assert!(entries(&long).is_empty(), "{:?}", entries(&long));
}

#[tokio::test]
async fn as_root_a_folder_that_postgres_cannot_enter_is_named() {
    let scratch = Scratch::new();
    if !is_root(&scratch) {
        return;
    }
    let closed = scratch.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    let error = Cluster::start(scratch.persistent("closed/cluster"))
        .await
        .unwrap_err();
    let named = matches!(&error, Error::NotEnterable { closed: it, .. } if *it == closed);
    assert!(named, "{error}");
    assert!(entries(&closed).is_empty(), "{:?}", entries(&closed));
}

#[test]
fn the_default_directory_is_one_that_postgres_may_enter() {
    let scratch = Scratch::new();
    let default = tidegate_embedded::default_directory(Path::new("/home/ada/data")).unwrap();
    let expected = if is_root(&scratch) {
        "/var/lib/tidegate"
    } else {
        "/home/ada/data/tidegate"
    };
    assert_eq!(default, Path::new(expected));
}

#[tokio::test]
async fn a_relative_path_works() {
    let scratch = Scratch::new();
    let upwards = "../".repeat(std::env::current_dir().unwrap().components().count());
    let relative = Path::new(&upwards).join(scratch.path().strip_prefix("/").unwrap());
    let data_dir = DataDir::Persistent(relative.join("cluster"));
    let cluster = Cluster::start(Settings {
        data_dir,
        ..testing::settings()
    })
    .await
    .unwrap();
    assert_eq!(cluster.data_dir(), scratch.path().join("cluster"));
}
