//! CPU time and memory of processes, read from `/proc`.

use std::fs;

use crate::Result;

/// Clock ticks a second, which Linux fixes for `/proc` (proc(5), `USER_HZ`).
const TICKS: f64 = 100.0;

fn stat(pid: u32) -> Result<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the command is in parentheses and may contain spaces. The fields after it contain
    // none.
    let (_, rest) = text.rsplit_once(')').ok_or("no process name")?;
    Ok(rest.split_whitespace().map(str::to_owned).collect())
}

fn ticks(stat: &[String], fields: &[usize]) -> Result<f64> {
    let mut sum = 0.0;
    for field in fields {
        // proc(5) counts fields from 1, and the first two fields are not in `stat`.
        sum += stat[field - 3].parse::<f64>()?;
    }
    Ok(sum / TICKS)
}

/// The seconds of CPU that a process has used.
pub(crate) fn cpu(pid: u32) -> Result<f64> {
    ticks(&stat(pid)?, &[14, 15])
}

/// The seconds of CPU that a process with one thread has used, more precisely than in clock ticks.
pub(crate) fn thread_cpu(pid: u32) -> Result<f64> {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/schedstat")) else {
        return cpu(pid);
    };
    let nanoseconds: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e9)
}

/// The seconds of CPU that the children of a process have used, including children that have ended.
/// Each child must have only one thread, as the processes of PostgreSQL do.
///
/// A child that ends between two reads would be missed, so the values are read until two results
/// agree.
pub(crate) fn family_cpu(parent: u32) -> Result<f64> {
    let mut last = sample(parent)?;
    loop {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let now = sample(parent)?;
        if now >= last && now - last < 0.02 {
            return Ok(now);
        }
        last = now;
    }
}

fn sample(parent: u32) -> Result<f64> {
    let mut sum = ticks(&stat(parent)?, &[16, 17])?;
    for entry in fs::read_dir("/proc")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let Ok(stat) = stat(pid) else { continue };
        if stat[1] == parent.to_string()
            && let Ok(cpu) = thread_cpu(pid)
        {
            sum += cpu;
        }
    }
    Ok(sum)
}

fn status(pid: u32, name: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .ok_or("no such line")?;
    let kib: u64 = line
        .trim_start_matches(':')
        .trim()
        .trim_end_matches(" kB")
        .parse()?;
    Ok(kib << 10)
}

/// The resident memory of a process, in bytes.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    status(pid, "VmRSS")
}

/// The peak of the resident memory of a process, in bytes.
pub(crate) fn peak(pid: u32) -> Result<u64> {
    status(pid, "VmHWM")
}

/// Resets the peak of the resident memory.
pub(crate) fn reset_peak(pid: u32) -> Result<()> {
    Ok(fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}
