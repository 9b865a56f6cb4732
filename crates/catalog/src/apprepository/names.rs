//! Names of CronJobs and Jobs, which may be too short for namespace and name of a repository.

/// Characters of a CronJob's name, so that its Jobs have room for theirs.
const LONGEST: usize = 52;
/// The longest decimal checksum, and the dash before it.
const CHECKSUM: usize = 11;
/// The longest value of a label.
const LABEL: usize = 63;

/// The CronJob of a repository; with a dash behind it, what the names of its Jobs begin with.
pub fn cron_job_name(namespace: &str, name: &str) -> String {
    joined("sync", namespace, name)
}

/// What the names of Jobs that remove a repository's rows begin with.
pub fn cleanup_prefix(namespace: &str, name: &str) -> String {
    format!("{}-", joined("cleanup", namespace, name))
}

fn joined(what: &str, namespace: &str, name: &str) -> String {
    // The prefix of Jobs has a dash at its end, which counts for one pattern only.
    let dash = usize::from(what == "cleanup");
    let own = format!("apprepo--{what}-").len() + dash;
    let room = (LONGEST - own) / 2;
    format!(
        "apprepo-{}-{what}-{}",
        cut(namespace, room),
        cut(name, room)
    )
}

/// The copy of a repository's Secrets beside its Jobs, if it is in another namespace.
pub fn secret_copy(namespace: &str, name: &str) -> String {
    format!("{namespace}-apprepo-{name}")
}

/// A name as the value of a label; a long one is cut, with a checksum.
pub fn label(name: &str) -> String {
    cut(name, LABEL)
}

/// At most `room` characters: the end is replaced by its checksum.
fn cut(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let at = room.checked_sub(CHECKSUM).unwrap_or(room);
    let (kept, rest) = text.split_at_checked(at).unwrap_or((text, ""));
    if room < CHECKSUM {
        return kept.to_owned();
    }
    format!("{kept}-{}", adler32(rest.as_bytes()))
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (low, high) = bytes.iter().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kubeapps() {
        assert_eq!(cut("1234567891234", 12), "1-269222519");
        let (namespace, name) = ("foo".repeat(7), "bar".repeat(7));
        let cron_job = "apprepo-foofoofo-645137792-sync-barbarba-620299591";
        assert_eq!(cron_job_name(&namespace, &name), cron_job);
        let cleanup = "apprepo-foofoo-847382101-cleanup-barbar-805766666-";
        assert_eq!(cleanup_prefix(&namespace, &name), cleanup);
        assert_eq!(
            cron_job_name("kubeapps", "stable"),
            "apprepo-kubeapps-sync-stable"
        );
        assert!(label(&"l".repeat(64)).len() <= 63);
        assert_eq!(label(&"l".repeat(63)), "l".repeat(63));
    }
}
