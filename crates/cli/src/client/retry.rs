//! How often a server that does not answer is tried again: `--http-retry-max`. Main type:
//! [`Retries`]. Main function: [`is_read`], which says what may be done twice.

use std::time::Duration;

/// Without the flag, as `argocd` tries calls over gRPC again.
const USUAL: u32 = 2;
/// The longest pause, in seconds.
const LONGEST: u64 = 30;

/// How the names of calls begin that change nothing.
const READING: [&str; 3] = ["Get", "List", "Watch"];
/// The names of the others.
const READS: [&str; 12] = [
    "CanI",
    "Generate",
    "ManagedResources",
    "PodLogs",
    "PreviewInstall",
    "PreviewRollback",
    "PreviewUpgrade",
    "ResourceTree",
    "Search",
    "ServerSideDiff",
    "ValidateAccess",
    "Version",
];

/// Whether a call changes nothing. `path` is `/service/Method`.
pub fn is_read(path: &str) -> bool {
    let method = path.rsplit_once('/').map_or(path, |(_, method)| method);
    READS.contains(&method) || READING.iter().any(|word| method.starts_with(word))
}

/// The tries that are left after the first.
pub struct Retries {
    max: u32,
    done: u32,
}

impl Retries {
    /// Of a call, which is tried again in any case.
    pub fn of_call(asked: Option<u32>) -> Self {
        Self::at_most(asked.unwrap_or(USUAL))
    }

    /// Of what is tried again only if the user asks for it.
    pub fn if_asked(asked: Option<u32>) -> Self {
        Self::at_most(asked.unwrap_or_default())
    }

    fn at_most(max: u32) -> Self {
        Self { max, done: 0 }
    }

    /// Waits until the next try; false: there is none.
    pub async fn wait(&mut self) -> bool {
        let Some(pause) = self.pause() else {
            return false;
        };
        tokio::time::sleep(pause).await;
        true
    }

    /// The pause before the next try: twice as long each time, as in `argocd`, so that a server that
    /// has too much to do recovers.
    fn pause(&mut self) -> Option<Duration> {
        if self.done >= self.max {
            return None;
        }
        let seconds = 1_u64.checked_shl(self.done).unwrap_or(LONGEST);
        self.done += 1;
        Some(Duration::from_secs(seconds.min(LONGEST)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(mut retries: Retries) -> Vec<u64> {
        let pauses = std::iter::from_fn(|| retries.pause());
        pauses.take(100).map(|pause| pause.as_secs()).collect()
    }

    #[test]
    fn there_are_as_many_as_asked_for() {
        assert_eq!(pauses(Retries::of_call(None)), [1, 2]);
        assert_eq!(pauses(Retries::of_call(Some(1))), [1]);
        assert!(pauses(Retries::if_asked(None)).is_empty());
        let many = pauses(Retries::if_asked(Some(7)));
        assert_eq!(many, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(pauses(Retries::of_call(Some(u32::MAX))).len(), 100);
    }

    #[test]
    fn what_may_be_done_twice() {
        for path in [
            "/application.ApplicationService/Get",
            "/application.ApplicationService/GetManifests",
            "/application.ApplicationService/List",
            "/application.ApplicationService/Watch",
            "/application.ApplicationService/PodLogs",
            "/version.VersionService/Version",
        ] {
            assert!(is_read(path), "{path}");
        }
        for path in [
            "/account.AccountService/CreateToken",
            "/application.ApplicationService/Sync",
            "/application.ApplicationService/RunResourceActionV2",
            "/catalog.CatalogService/SyncRepository",
            "/session.SessionService/Create",
            "/Get.GetService/Delete",
        ] {
            assert!(!is_read(path), "{path}");
        }
    }
}
