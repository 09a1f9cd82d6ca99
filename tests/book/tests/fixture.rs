//! The fixture of a document: a demo of its own, a folder, and replacements for the addresses in
//! it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The address of the service in the documents.
const SERVICE: &str = "127.0.0.1:8080";
/// The address of a cluster in the documents.
const CLUSTER: &str = "postgresql://admin:secret@db.example";

/// The ports of applications in the documents.
const APPLICATIONS: &[&str] = &["5173", "3100"];

/// A port on which nothing listens now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests have no caller who could say it"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The program in the environment, otherwise the one that Cargo built beside this test.
fn program() -> PathBuf {
    let built = std::env::current_exe().unwrap();
    let built = built.parent().unwrap().with_file_name("tidegate");
    let named = variable("TIDEGATE_TEST_BINARY").map(PathBuf::from);
    let program = named.unwrap_or(built);
    let hint = "build it first: `cargo build --locked -p tidegate`";
    assert!(program.exists(), "{} is missing; {hint}", program.display());
    program.canonicalize().unwrap()
}

/// The search path of programs; some servers are in `sbin`.
pub(crate) fn programs() -> String {
    format!("{}:/usr/sbin", variable("PATH").unwrap())
}

/// Ends with its standard input, so that it does not outlive the test; then removes the folder.
const SUPERVISOR: &str = r#"
"$1" demo --listen 127.0.0.1:0 --data-dir "$2/demo" >"$2/says" 2>"$2/log" </dev/null &
demo=$!
read -r _
kill $demo; wait $demo
rm -rf "$2"
"#;

pub(crate) struct BookFixture {
    /// The folder in which the commands run.
    pub(crate) folder: PathBuf,
    pub(crate) path: String,
    base: PathBuf,
    demo: Child,
    /// Addresses in the documents, and their replacements.
    pub(crate) addresses: Vec<(&'static str, String)>,
    /// The address of a service that the document starts.
    pub(crate) own: Option<String>,
}

impl BookFixture {
    /// With `own`, the document starts a service itself, and only uses the demo's cluster.
    pub(crate) fn new(own: bool) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate-book-{}-{number}", std::process::id());
        let base = std::env::temp_dir().join(name);
        let folder = base.join("work");
        fs::create_dir_all(folder.join(".steps")).unwrap();
        fs::create_dir_all(base.join("bin")).unwrap();
        std::os::unix::fs::symlink(program(), base.join("bin/tidegate")).unwrap();
        let reported = base.join("says");
        assert!(
            Command::new("mkfifo")
                .arg(&reported)
                .status()
                .unwrap()
                .success()
        );
        let demo = Command::new("bash")
            .args(["-c", SUPERVISOR, "demo"])
            .args([base.join("bin/tidegate"), base.clone()])
            // The issuer of a document listens on this machine.
            .env("TIDEGATE_PRIVATE_ISSUERS", "true")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let banner = BufReader::new(fs::File::open(&reported).unwrap());
        let ready = banner
            .lines()
            .any(|line| line.unwrap().starts_with("Ctrl-C"));
        let log = fs::read_to_string(base.join("log")).unwrap();
        assert!(ready, "the demo did not start\n{log}");
        let env = fs::read_to_string(base.join("demo/demo.env")).unwrap();
        let value = |name: &str| {
            let line = env.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim_matches(['"', '\'', '=']).to_owned()
        };
        let database = value("DATABASE_URL");
        let (cluster, _) = database.rsplit_once('/').unwrap();
        let own = own.then(|| format!("127.0.0.1:{}", free_port()));
        let service = value("TIDEGATE_URL").replace("http://", "");
        let service = own.clone().unwrap_or(service);
        let path = format!("{}:{}", base.join("bin").display(), programs());
        let mut addresses = vec![(SERVICE, service), (CLUSTER, cluster.to_owned())];
        addresses.extend(
            APPLICATIONS
                .iter()
                .map(|port| (*port, free_port().to_string())),
        );
        Self {
            folder,
            path,
            base,
            demo,
            addresses,
            own,
        }
    }

    /// What the demo logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.base.join("log")).unwrap_or_default()
    }

    /// A text of the document with the fixture's addresses.
    pub(crate) fn localized(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (written, here) in &self.addresses {
            text = text.replace(written, here);
        }
        text
    }

    /// A text of the fixture with the document's addresses.
    pub(crate) fn as_written(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (written, here) in &self.addresses {
            text = text.replace(here, written);
        }
        text
    }
}

impl Drop for BookFixture {
    fn drop(&mut self) {
        drop(self.demo.stdin.take());
        let _ = self.demo.wait();
    }
}
