//! Starts processes for tests, reads their output and waits for their end.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::service::TIMEOUT;

const PAUSE: Duration = Duration::from_millis(10);

/// A process that is killed on drop, even if its test fails. Otherwise it would keep a pipe from
/// the test's output open.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Waits until the process exits.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < TIMEOUT, "it does not end");
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The output of a process, read in the background so that it never blocks.
pub(crate) struct ProcessOutput {
    text: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl ProcessOutput {
    /// Reads from a pipe.
    pub(crate) fn of(pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let reported = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = String::new();
            while pipe.read_line(&mut line).unwrap() > 0 {
                reported.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Self { text, reader }
    }

    /// The output up to the first line that contains all parts, if there is one.
    pub(crate) fn up_to(&self, parts: &[&str]) -> Option<String> {
        let ended = self.reader.is_finished();
        let text = self.text.lock().unwrap();
        let mut end = 0;
        for line in text.split_inclusive('\n') {
            end += line.len();
            if parts.iter().all(|part| line.contains(part)) {
                return Some(text[..end].to_owned());
            }
        }
        assert!(!ended, "it ended before {parts:?}: {text}");
        None
    }

    /// How many lines of the output so far contain all parts.
    pub(crate) fn count(&self, parts: &[&str]) -> usize {
        let text = self.text.lock().unwrap();
        let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
        text.lines().filter(has_all).count()
    }

    /// Waits for a line that contains `part`. Returns the output up to it.
    pub(crate) fn wait_for(&self, part: &str) -> String {
        let began = Instant::now();
        loop {
            if let Some(text) = self.up_to(&[part]) {
                return text;
            }
            let text = self.text.lock().unwrap();
            assert!(began.elapsed() < TIMEOUT, "{part} is not in\n{text}");
            drop(text);
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until a node logs that it listens. Returns its port.
    pub(crate) async fn port(&self) -> u16 {
        let serves = || self.up_to(&["listening", "addresses"]);
        crate::service::eventually("the node serves", || async { serves().is_some() }).await;
        let text = serves().unwrap();
        let (_, addresses) = text.rsplit_once("addresses").unwrap();
        let (_, port) = addresses.split_once("127.0.0.1:").unwrap();
        let (port, _) = port.split_once('"').unwrap();
        port.parse().unwrap()
    }

    /// All output of a process that has ended.
    pub(crate) fn all(self) -> String {
        self.reader.join().unwrap();
        std::mem::take(&mut *self.text.lock().unwrap())
    }
}
