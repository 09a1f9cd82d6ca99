//! Tests starting as a user other than root.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use std::process::Command;

use tidegate_embedded::{Cluster, Error};

use crate::child::Runner;
use crate::scratch::{Scratch, UNPRIVILEGED_UID, connect, eventually, is_root, text};

#[tokio::test]
async fn an_ordinary_user_runs_a_temporary_and_a_kept_cluster() {
    let scratch = Scratch::new();
    if !is_root(&scratch) {
        // This process is not root, so all other tests cover this case.
        return;
    }
    // Other users may be unable to enter the build directory.
    let program = scratch.path().join("program");
    // Another process makes the copy. A file that this process writes could be open in a child
    // process of another test, and a program that is open for writing cannot be run.
    let copied = Command::new("cp")
        .arg(Runner::program())
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let home = scratch.path().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).unwrap();

    let persistent = home.join("cluster");
    for what in ["temporary", persistent.to_str().unwrap()] {
        let runner = Runner::start(&program, what, Some(UNPRIVILEGED_UID));
        let directory = runner.directory.clone();
        let client = connect(&runner.url).await.unwrap();
        assert_eq!(
            text(&client, "select current_user::text").await.unwrap(),
            "postgres"
        );
        assert_eq!(
            fs::metadata(directory.join("data")).unwrap().uid(),
            UNPRIVILEGED_UID
        );
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
        runner.finish();
        eventually("it is cleared up", || {
            !directory.join("data/postmaster.pid").exists()
        });
        assert_eq!(directory.exists(), what != "temporary");
    }
    let error = Cluster::start(scratch.persistent("home/cluster"))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Owner {
                owner: UNPRIVILEGED_UID,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        fs::metadata(&persistent).unwrap().uid(),
        UNPRIVILEGED_UID,
        "root changes nothing of theirs"
    );
}
