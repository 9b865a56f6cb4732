//! The resource usage of a process, from /proc.

use anyhow::Context;
use std::fs;

/// Clock ticks a second as /proc counts them; Linux shows 100 to every program.
const TICKS: f64 = 100.0;

/// CPU time so far, of all threads and of ended children, in seconds.
pub fn cpu_seconds(id: u32) -> anyhow::Result<f64> {
    ticks(id, 11..15)
}

/// CPU time of this process's ended children, in seconds.
pub fn children_cpu_seconds() -> anyhow::Result<f64> {
    ticks(std::process::id(), 13..15)
}

fn ticks(id: u32, which: std::ops::Range<usize>) -> anyhow::Result<f64> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).context("the process is gone")?;
    // The name is in brackets and may contain anything; the fields after it are numbered from 3.
    let fields: Vec<_> = text
        .rsplit_once(')')
        .context("no name in /proc/ID/stat")?
        .1
        .split_whitespace()
        .collect();
    let ticks: f64 = fields
        .get(which)
        .unwrap_or_default()
        .iter()
        .filter_map(|f| f.parse::<f64>().ok())
        .sum();
    Ok(ticks / TICKS)
}

/// Peak memory, in MiB.
pub fn peak_mebibytes(id: u32) -> anyhow::Result<f64> {
    mebibytes(id, "VmHWM:")
}

/// From now on the peak is that of what comes.
pub fn forget_peak(id: u32) -> anyhow::Result<()> {
    fs::write(format!("/proc/{id}/clear_refs"), "5").context("the peak cannot be forgotten")
}

/// Current memory, in MiB.
pub fn resident_mebibytes(id: u32) -> anyhow::Result<f64> {
    mebibytes(id, "VmRSS:")
}

/// Open descriptors.
pub fn descriptors(id: u32) -> anyhow::Result<usize> {
    Ok(fs::read_dir(format!("/proc/{id}/fd"))
        .context("the process is gone")?
        .count())
}

pub fn threads(id: u32) -> anyhow::Result<usize> {
    Ok(fs::read_dir(format!("/proc/{id}/task"))
        .context("the process is gone")?
        .count())
}

fn mebibytes(id: u32, field: &str) -> anyhow::Result<f64> {
    let text = fs::read_to_string(format!("/proc/{id}/status")).context("the process is gone")?;
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix(field))
        .with_context(|| format!("no {field} in /proc/ID/status"))?;
    let kibibytes: f64 = line
        .split_whitespace()
        .next()
        .with_context(|| format!("{field} is empty"))?
        .parse()?;
    Ok(kibibytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_has_figures() {
        let id = std::process::id();
        assert!(cpu_seconds(id).is_ok_and(|s| s >= 0.0));
        assert!(peak_mebibytes(id).is_ok_and(|m| m > 0.5));
        assert!(descriptors(id).is_ok_and(|n| n > 0) && threads(id).is_ok_and(|n| n > 0));
    }
}
