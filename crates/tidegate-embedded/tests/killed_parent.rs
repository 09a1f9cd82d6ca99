//! Tests a process that ends without cleaning up.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tidegate_embedded::Cluster;

use crate::child::Runner;
use crate::scratch::{Scratch, connect, eventually, is_root, postmaster, text};

#[test]
fn a_temporary_cluster_of_a_killed_process_is_cleared_up() {
    let runner = Runner::start(&Runner::program(), "temporary", None);
    let directory = runner.directory.clone();
    assert!(directory.join("data/postmaster.pid").is_file());
    runner.kill();
    eventually("the directory is gone", || !directory.exists());
}

#[test]
fn a_shared_cluster_is_cleared_up_when_the_process_is_done() {
    let runner = Runner::start(&Runner::program(), "shared", None);
    let directory = runner.directory.clone();
    runner.finish();
    eventually("the directory is gone", || !directory.exists());
}

#[tokio::test]
async fn a_kept_cluster_of_a_killed_process_is_stopped_and_starts_again() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("cluster");
    let runner = Runner::start(&Runner::program(), directory.to_str().unwrap(), None);
    let client = connect(&runner.url).await.unwrap();
    client
        .batch_execute("create table kept as select 'still here' as word")
        .await
        .unwrap();
    runner.kill();
    eventually("PostgreSQL stops", || {
        !directory.join("data/postmaster.pid").exists()
    });
    let cluster = Cluster::start(scratch.persistent("cluster")).await.unwrap();
    let client = connect(&cluster.admin_url()).await.unwrap();
    assert_eq!(
        text(&client, "select word from kept").await.unwrap(),
        "still here"
    );
}

#[tokio::test]
async fn a_start_right_after_the_kill_takes_the_directory_over() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("cluster");
    for _ in 0..3 {
        Runner::start(&Runner::program(), directory.to_str().unwrap(), None).kill();
        let cluster = Cluster::start(scratch.persistent("cluster")).await.unwrap();
        connect(&cluster.admin_url()).await.unwrap();
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_orphaned_postgresql_is_stopped_and_replaced() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("cluster");
    let runner = Runner::start(&Runner::program(), directory.to_str().unwrap(), None);
    let client = connect(&runner.url).await.unwrap();
    client
        .batch_execute("create table kept as select 'still here' as word")
        .await
        .unwrap();
    let orphan = postmaster(&directory);
    kill("KILL", watcher_of(runner.pid()));
    runner.kill();
    assert_eq!(
        text(&client, "select 'it runs on'").await.unwrap(),
        "it runs on"
    );

    let cluster = Cluster::start(scratch.persistent("cluster")).await.unwrap();
    assert_ne!(postmaster(&directory), orphan);
    let client = connect(&cluster.admin_url()).await.unwrap();
    assert_eq!(
        text(&client, "select word from kept").await.unwrap(),
        "still here"
    );
}

#[tokio::test]
async fn an_unrelated_process_with_the_old_id_is_not_stopped() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("cluster");
    Cluster::start(scratch.persistent("cluster"))
        .await
        .unwrap()
        .stop()
        .await
        .unwrap();
    let mut sleep = Command::new("sleep");
    sleep.arg("600");
    if is_root(&scratch) {
        // PostgreSQL takes only a process of its own user for another server.
        sleep.uid(fs::metadata(directory.join("data")).unwrap().uid());
    }
    let mut stranger = sleep.spawn().unwrap();
    let file = format!("{}\n{}\n", stranger.id(), directory.join("data").display());
    fs::write(directory.join("data/postmaster.pid"), file).unwrap();

    let started = Cluster::start(scratch.persistent("cluster")).await;
    let left_alone = stranger.try_wait().unwrap().is_none();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    connect(&started.unwrap().admin_url()).await.unwrap();
    assert!(left_alone);
}

#[test]
fn a_process_killed_after_a_restart_is_cleared_up_too() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("cluster");
    let mut runner = Runner::start(&Runner::program(), directory.to_str().unwrap(), None);
    let first = postmaster(&directory);
    runner.restart_cluster();
    assert_ne!(postmaster(&directory), first);
    runner.kill();
    eventually("PostgreSQL stops", || {
        !directory.join("data/postmaster.pid").exists()
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_watcher_is_replaced_at_the_next_restart() {
    let mut runner = Runner::start(&Runner::program(), "temporary", None);
    kill("KILL", watcher_of(runner.pid()));
    runner.restart_cluster();
    let directory = runner.directory.clone();
    runner.kill();
    eventually("the directory is gone", || !directory.exists());
}

#[cfg(target_os = "linux")]
fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill")
        .args(["-s", signal, &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// The watcher process that `parent` started.
#[cfg(target_os = "linux")]
fn watcher_of(parent: u32) -> u32 {
    let is_watcher = |pid: u32| {
        let command_line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let its_parent = stat
            .rsplit_once(')')
            .and_then(|(_, it)| it.split_whitespace().nth(1));
        command_line.contains("tidegate-watcher") && its_parent == Some(&parent.to_string())
    };
    let processes = fs::read_dir("/proc")
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut pids = processes.filter_map(|name| name.to_str()?.parse().ok());
    pids.find(|pid| is_watcher(*pid))
        .expect("a process with a cluster has a watcher")
}
