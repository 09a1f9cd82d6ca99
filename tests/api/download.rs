//! Tests `tidegate demo` on a machine without PostgreSQL.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tidegate_testkit::left_out;

use crate::download_server::ReleaseServer;
use crate::operator::text;
use crate::process::{Process, ProcessOutput};
use crate::service::{BINARY, demo_folder};

/// The folders in which Debian's packages install the programs, which find their data files at
/// fixed paths.
const INSTALLED: &str = "/usr/lib/postgresql/*/bin";

/// Whether the installed programs can be hidden from a process. That takes root, and packages whose
/// folders contain nothing else.
fn can_hide() -> bool {
    let hidden = Command::new("unshare")
        .args(["--mount", "sh", "-c"])
        .arg(format!(
            "ls {INSTALLED}/postgres && mount -t tmpfs none /mnt"
        ))
        .output();
    let possible = hidden.is_ok_and(|output| output.status.success());
    if !possible {
        let reason = "the installed PostgreSQL cannot be hidden from a process";
        left_out("unshare", reason);
    }
    possible
}

/// A server with a release that contains the installed programs, and the checksum of the release.
fn release(folder: &Path) -> (ReleaseServer, String) {
    let script = format!(
        "cd {} && mkdir --parents release/bin release/lib \
         && bin=$(ls -d {INSTALLED} | tail -n 1) \
         && cp $bin/{{postgres,initdb,pg_ctl}} release/bin \
         && cp $bin/../lib/{{dict_snowball,plpgsql,pgoutput}}.so release/lib \
         && tar --create --gzip --file release.tar.gz release && sha256sum release.tar.gz",
        folder.display()
    );
    let made = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let archive = std::fs::read(folder.join("release.tar.gz")).unwrap();
    let sum = text(&made.stdout).split(' ').next().unwrap().to_owned();
    (ReleaseServer::having(&archive), sum)
}

/// A command that runs the demo where no PostgreSQL is installed, with its data and downloads in
/// `folder`.
fn demo(folder: &TempDir, arguments: &[&str]) -> Command {
    let script = format!(
        "for folder in {INSTALLED}; do mount -t tmpfs none $folder || exit; done; exec \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh", BINARY, "demo"]);
    command.args(["--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(folder.path().join("demo"));
    command.arg("--cache-dir").arg(folder.path().join("cache"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a demo that must not start. Returns its error.
fn refusal(folder: &TempDir, arguments: &[&str]) -> String {
    let output = demo(folder, arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!folder.path().join("cache").exists(), "it wrote something");
    let output_text = text(&output.stderr);
    assert!(
        output_text.contains("apt-get install postgresql"),
        "{output_text}"
    );
    output_text
}

/// Starts the demo, stops it, and returns its output.
fn run(folder: &TempDir, arguments: &[&str]) -> String {
    let mut command = demo(folder, arguments);
    let mut child = Process(command.stdout(Stdio::piped()).spawn().unwrap());
    let printed = ProcessOutput::of(child.0.stdout.take().unwrap()).wait_for("Ctrl-C");
    let pid = child.0.id().to_string();
    let stopped = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(stopped.unwrap().success());
    assert_eq!(child.end().code(), Some(0));
    printed
}

#[test]
fn the_demo_downloads_postgresql_if_none_is_installed() {
    if !can_hide() {
        return;
    }
    let folder = demo_folder();
    let (server, sum) = release(folder.path());
    let mirror = ["--postgresql-download-url", server.url.as_str()];
    let checksum = ["--postgresql-download-sha256", sum.as_str()];

    let refused = refusal(&folder, &[&mirror[..], &["--no-fetch"]].concat());
    assert!(refused.contains("no PostgreSQL server found"), "{refused}");
    assert_eq!(server.requests(), 0);
    let closed = ["--postgresql-download-url", "http://127.0.0.1:1/"];
    let refused = refusal(&folder, &closed);
    assert!(
        refused.contains("cannot download http://127.0.0.1:1/17.") && refused.contains("refused"),
        "{refused}"
    );
    // The archive of this test is not the pinned release.
    let refused = refusal(&folder, &mirror);
    assert!(refused.contains(&sum), "{refused}");

    let all = [mirror, checksum].concat();
    let printed = run(&folder, &all);
    let first = printed.lines().next().unwrap();
    assert!(
        first.starts_with("PostgreSQL is not installed; downloading version 17.")
            && first.contains(" MB) from http://127.0.0.1:")
            && first.ends_with("/cache"),
        "{printed}"
    );
    // The second start uses the downloaded programs.
    let printed = run(&folder, &all);
    assert!(!printed.contains("downloading"), "{printed}");
    assert_eq!(server.requests(), 2);
}
