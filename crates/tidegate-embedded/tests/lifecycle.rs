//! Tests stopping and starting a running cluster.

use std::fs;

use tidegate_embedded::{Cluster, Shutdown, testing};

use crate::scratch::{Scratch, connect, postmaster, text};

#[tokio::test]
async fn after_every_kind_of_stop_it_starts_again_with_its_data_on_the_same_port() {
    let scratch = Scratch::new();
    let cluster = Cluster::start(scratch.persistent("cluster")).await.unwrap();
    let client = connect(&cluster.admin_url()).await.unwrap();
    client
        .batch_execute("create table kept as select 'still here' as word")
        .await
        .unwrap();
    for mode in [Shutdown::Fast, Shutdown::Immediate, Shutdown::Kill] {
        let before = connect(&cluster.admin_url()).await.unwrap();
        cluster.restart(mode).await.unwrap();
        assert!(
            text(&before, "select 'on'").await.is_err(),
            "{mode:?} ends the sessions"
        );
        let after = connect(&cluster.admin_url()).await.unwrap();
        assert_eq!(
            text(&after, "select word from kept").await.unwrap(),
            "still here"
        );
    }
}

#[tokio::test]
async fn a_halted_cluster_refuses_connections_until_it_resumes() {
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    cluster.halt(Shutdown::Immediate).await.unwrap();
    assert!(connect(&cluster.admin_url()).await.is_err());
    assert!(connect(&cluster.socket_url("postgres")).await.is_err());
    cluster.resume().await.unwrap();
    connect(&cluster.admin_url()).await.unwrap();
}

#[tokio::test]
async fn resuming_a_running_cluster_changes_nothing() {
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let before = postmaster(cluster.data_dir());
    cluster.resume().await.unwrap();
    assert_eq!(postmaster(cluster.data_dir()), before);
}

#[tokio::test]
async fn settings_of_the_caller_reach_the_server() {
    let word = "it's \\ a 'word'";
    let settings = testing::settings()
        .with("max_connections", "17")
        .with("tidegate.word", word);
    let cluster = Cluster::start(settings).await.unwrap();
    let client = connect(&cluster.admin_url()).await.unwrap();
    assert_eq!(text(&client, "show max_connections").await.unwrap(), "17");
    assert_eq!(text(&client, "show tidegate.word").await.unwrap(), word);
    assert_eq!(text(&client, "show fsync").await.unwrap(), "off");
}

#[cfg(target_os = "linux")]
#[test]
fn the_server_has_a_process_group_of_its_own_and_nothing_of_our_environment() {
    let pid = postmaster(testing::cluster().data_dir());
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The fields after the name in brackets are state, parent and process group (proc(5)).
    let group = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .nth(2)
        .unwrap();
    assert_eq!(group, pid.to_string());
    let environment = fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
    let mut names: Vec<_> = environment
        .split_terminator('\0')
        .map(|variable| variable.split_once('=').unwrap().0)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["LC_ALL", "PATH"]);
}
