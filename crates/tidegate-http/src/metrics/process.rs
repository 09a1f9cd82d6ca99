//! Metrics of the build and the process, with the names of Prometheus' client libraries ("Writing
//! client libraries", section "Process metrics").
//!
//! The process metrics are read from `/proc`. On systems without `/proc` they are left out.

use std::fmt::{self, Write as _};
use std::fs;

use super::text_format::{begin_family, write_metric};

/// Clock ticks per second (`USER_HZ`). Linux fixes it at 100 for values in `/proc` on all
/// processors that Rust's standard library supports.
const TICKS: f64 = 100.0;

/// Appends the metrics of the build and of the process.
pub(super) fn write(text: &mut String) -> fmt::Result {
    let version = env!("CARGO_PKG_VERSION");
    let build = "tidegate_build_info";
    let help = "The version of the running binary; the value is always 1.";
    begin_family(text, build, "gauge", help)?;
    writeln!(text, "{build}{{version=\"{version}\"}} 1")?;
    if let Some(stat) = Stat::read() {
        let name = "process_cpu_seconds_total";
        let help = "User and system CPU time of the process in seconds.";
        write_metric(text, (name, "counter"), help, stat.cpu_seconds)?;
        let name = "process_start_time_seconds";
        let help = "Start of the process in seconds since the Unix epoch.";
        write_metric(text, (name, "gauge"), help, stat.started)?;
        let name = "process_virtual_memory_bytes";
        let help = "Virtual memory of the process in bytes.";
        write_metric(text, (name, "gauge"), help, stat.virtual_bytes)?;
    }
    for (name, help, value) in [
        (
            "process_resident_memory_bytes",
            "Resident memory of the process in bytes.",
            resident_memory(),
        ),
        (
            "process_open_fds",
            "Open file descriptors of the process.",
            open_files(),
        ),
        (
            "process_max_fds",
            "File descriptors that the process may have open at most.",
            most_files(),
        ),
    ] {
        if let Some(value) = value {
            write_metric(text, (name, "gauge"), help, value)?;
        }
    }
    Ok(())
}

/// The fields of `/proc/self/stat` (proc(5)).
struct Stat {
    cpu_seconds: f64,
    started: f64,
    virtual_bytes: u64,
}

impl Stat {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // Field 2, the name of the program, is in parentheses and may contain spaces and
        // parentheses. The text after it starts with field 3.
        let (_, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<_> = fields.split_ascii_whitespace().collect();
        let ticks = |field: usize| -> Option<f64> { fields.get(field - 3)?.parse().ok() };
        let system = fs::read_to_string("/proc/stat").ok()?;
        let mut lines = system.lines();
        let boot: f64 = lines
            .find_map(|line| line.strip_prefix("btime "))?
            .parse()
            .ok()?;
        Some(Self {
            cpu_seconds: (ticks(14)? + ticks(15)?) / TICKS,
            started: boot + ticks(22)? / TICKS,
            virtual_bytes: fields.get(23 - 3)?.parse().ok()?,
        })
    }
}

fn resident_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn open_files() -> Option<u64> {
    let files = fs::read_dir("/proc/self/fd").ok()?.count();
    // One is subtracted, because the directory `/proc/self/fd` itself is an open file while it is
    // read.
    u64::try_from(files).ok()?.checked_sub(1)
}

/// The soft limit on open files; `None` if it is unlimited or cannot be read.
fn most_files() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let mut lines = limits.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
