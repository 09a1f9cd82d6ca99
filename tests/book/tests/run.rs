//! Runs one document.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::blocks::{Block, BlockAction, Blocks, NEEDS, matches};
use crate::fixture::{BookFixture, programs, root, variable};

/// The deadline of a command, which may download packages.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(5);

/// Any output: the service that a document starts is running.
const SAYS_SOMETHING: &str = "…";

/// A bash for all steps of a document, so that variables and functions persist.
struct Shell {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Shell {
    fn new(fixture: &BookFixture) -> Self {
        let mut command = Command::new("bash");
        for name in [
            "TIDEGATE_CONFIG",
            "TIDEGATE_URL",
            "DATABASE_URL",
            "TIDEGATE_TEST_BINARY",
        ] {
            command.env_remove(name);
        }
        if let Some(address) = &fixture.own {
            command.env("TIDEGATE_LISTEN", address);
            // The demo's own control database has the default name.
            command.env("TIDEGATE_CONTROL_DATABASE", "tidegate_book");
        }
        let mut process = command
            .current_dir(&fixture.folder)
            .env("PATH", &fixture.path)
            .env("BOOK", root().join("tests/book"))
            .env("REPOSITORY", root())
            .env("STEPS", fixture.folder.join(".steps"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut input = process.stdin.take().unwrap();
        // Background jobs are process groups of their own and end with the shell.
        let start = "set -muE; trap 'failed=1' ERR; \
                     trap 'for job in $(jobs -p); do kill -- -$job; done 2>/dev/null' EXIT";
        writeln!(input, "{start}").unwrap();
        let input = Some(input);
        Self {
            process,
            input,
            lines,
        }
    }

    /// Runs a line and returns the next line that the shell prints.
    fn ask(&mut self, line: &str) -> String {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        self.lines
            .recv_timeout(COMMAND_TIMEOUT)
            .unwrap_or_else(|error| error.to_string())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}

struct Running<'a> {
    document: &'a str,
    fixture: BookFixture,
    shell: Shell,
    /// The background commands and their output so far, by number.
    started: Vec<(usize, &'a Block, String)>,
}

impl<'a> Running<'a> {
    fn file(&self, name: String) -> String {
        let path = self.fixture.folder.join(".steps").join(name);
        let bytes = fs::read(path).unwrap_or_default();
        self.fixture.as_written(&String::from_utf8_lossy(&bytes))
    }

    fn fail(&self, number: usize, block: &Block, what: &str) -> ! {
        let (out, err) = (
            self.file(format!("{number}.out")),
            self.file(format!("{number}.err")),
        );
        panic!(
            "{}:{}\n{}\n{what}\nIt printed\n{out}\n{err}\nThe demo logged\n{}",
            self.document,
            block.line,
            block.text,
            self.fixture.log()
        );
    }

    fn step(&mut self, number: usize, block: &'a Block) {
        let text = self.fixture.localized(&block.text);
        let script = self.fixture.folder.join(".steps").join(number.to_string());
        match &block.step {
            BlockAction::File(name) => {
                let path = self.fixture.folder.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            BlockAction::Run(expected) => {
                fs::write(script, text).unwrap();
                self.run(number, block, expected.as_deref());
            }
            BlockAction::Start(expected) => {
                fs::write(script, text).unwrap();
                let pattern = expected.as_deref().unwrap_or(SAYS_SOMETHING).to_owned();
                let first = pattern.lines().next().unwrap().to_owned();
                let start = format!(
                    "( . $STEPS/{number} ) </dev/null >$STEPS/{number}.out 2>&1 & echo started"
                );
                assert_eq!(self.shell.ask(&start), "started");
                self.wait_for(number, block, &format!("{first}…"));
                self.started.push((number, block, pattern));
            }
        }
    }

    fn run(&mut self, number: usize, block: &Block, expected: Option<&str>) {
        let response = self.shell.ask(&format!(
            "failed=0; . $STEPS/{number} </dev/null >$STEPS/{number}.out 2>$STEPS/{number}.err; \
             echo \"$? $failed\""
        ));
        if response != "0 0" {
            self.fail(number, block, &format!("failed ({response})"));
        }
        let printed = self.file(format!("{number}.out"));
        match expected {
            Some(expected) if !matches(expected, &printed) => {
                self.fail(number, block, &format!("should have printed\n{expected}"));
            }
            // curl succeeds even if the response is an error.
            None if printed.contains("\"error") => self.fail(number, block, "printed an error"),
            _ => {}
        }
    }

    /// Waits until a background command has printed something that matches.
    fn wait_for(&self, number: usize, block: &Block, pattern: &str) {
        let started = Instant::now();
        let pattern = format!("…{}…", pattern.trim_end());
        loop {
            let printed = self.file(format!("{number}.out"));
            if !printed.is_empty() && matches(&pattern, &printed) {
                return;
            }
            if started.elapsed() > Duration::from_mins(2) {
                self.fail(number, block, &format!("never printed\n{pattern}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What the document needs beyond bash, curl and a demo.
fn needs(text: &str) -> Vec<&str> {
    let line = text.lines().find_map(|line| line.strip_prefix(NEEDS));
    let words = line.unwrap_or_default().trim_end_matches("-->");
    words.split_whitespace().collect()
}

/// Whether the document is skipped, because a program is missing or it needs a network.
fn is_left_out(needs: &[&str]) -> bool {
    let required = variable("TIDEGATE_TEST_REQUIRE").unwrap_or_default();
    if required.split(',').any(|part| part == "book") {
        return false;
    }
    let is_missing = |program: &&str| {
        let found = Command::new("sh")
            .args(["-c", "command -v \"$0\" >&2", program])
            .env("PATH", programs())
            .output();
        !found.unwrap().status.success()
    };
    needs
        .iter()
        .filter(|it| **it != "own-service")
        .any(|need| match *need {
            "network" => true,
            "extension:postgis" => !has_postgis(),
            program => is_missing(&program),
        })
}

/// Whether PostGIS is installed for some version of PostgreSQL.
fn has_postgis() -> bool {
    let versions = fs::read_dir("/usr/share/postgresql").into_iter().flatten();
    let control = "extension/postgis.control";
    versions
        .flatten()
        .any(|version| version.path().join(control).exists())
}

/// Runs a document, as a reader would.
pub(crate) fn run(document: &str, keep: impl Fn(&str) -> bool) {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let needs = needs(&text);
    if is_left_out(&needs) {
        let _ = writeln!(
            std::io::stderr(),
            "{document} is skipped: it needs {needs:?}"
        );
        return;
    }
    let blocks = Blocks::of(&text);
    let fixture = BookFixture::new(needs.contains(&"own-service"));
    let mut running = Running {
        document,
        shell: Shell::new(&fixture),
        fixture,
        started: Vec::new(),
    };
    let kept = blocks.steps.iter().filter(|block| keep(&block.text));
    for (number, block) in kept.enumerate() {
        running.step(number, block);
    }
    for (number, block, pattern) in &running.started {
        running.wait_for(*number, block, pattern);
    }
}
