//! Runs this test binary again, as a process that starts a cluster and can be killed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};

use tidegate_embedded::{Cluster, DataDir, Settings, Shutdown, testing};

/// A process that runs one cluster.
pub(crate) struct Runner {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStderr>,
    pub(crate) directory: PathBuf,
    pub(crate) url: String,
}

impl Runner {
    /// Starts a process. `what` is `shared`, `temporary` or a directory to keep; `uid` is the user
    /// of the process.
    pub(crate) fn start(program: &Path, what: &str, uid: Option<u32>) -> Self {
        let mut command = Command::new(program);
        command.args([
            "--ignored",
            "--exact",
            "--nocapture",
            "child::a_process_with_a_cluster",
        ]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Some(uid) = uid {
            command.uid(uid).gid(uid).current_dir("/");
        }
        let mut process = command.spawn().unwrap();
        let mut input = process.stdin.take().unwrap();
        writeln!(input, "{what}").unwrap();
        let mut output = BufReader::new(process.stderr.take().unwrap());
        let mut response = String::new();
        output.read_line(&mut response).unwrap();
        let words: Vec<_> = response.split_whitespace().collect();
        let [directory, url] = words[..] else {
            panic!("the process says: {response}")
        };
        Self {
            process,
            input,
            output,
            directory: directory.into(),
            url: url.to_owned(),
        }
    }

    /// The path of this test binary.
    pub(crate) fn program() -> PathBuf {
        std::env::current_exe().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Makes the process stop and start its PostgreSQL.
    pub(crate) fn restart_cluster(&mut self) {
        writeln!(self.input, "restart").unwrap();
        let mut response = String::new();
        self.output.read_line(&mut response).unwrap();
        assert_eq!(response, "restarted\n");
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Lets the process end by itself. Its cluster is in a `static`, which is not dropped, or is
    /// dropped before the end.
    pub(crate) fn finish(mut self) {
        drop(self.input);
        assert!(self.process.wait().unwrap().success());
    }
}

#[test]
#[ignore = "other tests run it as a process of its own"]
fn a_process_with_a_cluster() {
    let mut what = String::new();
    std::io::stdin().read_line(&mut what).unwrap();
    match what.trim() {
        "" => {}
        "shared" => run(testing::cluster()),
        "temporary" => run(&Cluster::start_blocking(&testing::settings()).unwrap()),
        path => {
            let data_dir = DataDir::Persistent(path.into());
            let settings = Settings {
                data_dir,
                ..testing::settings()
            };
            run(&Cluster::start_blocking(&settings).unwrap());
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the process that runs this one reads it"
)]
fn run(cluster: &Cluster) {
    eprintln!("{} {}", cluster.data_dir().display(), cluster.admin_url());
    // The loop ends when the parent process closes its end of the pipe.
    for line in std::io::stdin().lines() {
        assert_eq!(line.unwrap(), "restart");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(cluster.restart(Shutdown::Fast)).unwrap();
        eprintln!("restarted");
    }
}
