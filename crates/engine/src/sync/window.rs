//! Sync windows of a project: when syncs may run.
//!
//! Main type: [`Windows`], those that apply to one Application. Times are arguments; nothing here
//! waits.

use crate::pattern::glob;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use std::time::Duration;
use tiphys_api::{Application, project::SyncWindow};
use tiphys_gocompat::{
    cron::{self, Schedule},
    duration,
};

/// The windows that apply to an Application.
#[derive(Clone, Debug, Default)]
pub struct Windows<'a>(pub Vec<&'a SyncWindow>);

/// A window with a valid schedule.
struct Opened<'a> {
    window: &'a SyncWindow,
    /// When it closes; `None` if it is not open.
    until: Option<Timestamp>,
    /// When it opens next.
    next: Option<Timestamp>,
}

impl<'a> Windows<'a> {
    /// Those of a project that match the Application, its destination cluster or its destination
    /// namespace; with `andOperator`, all of these that are set must match.
    pub fn of(windows: &'a [SyncWindow], app: &Application) -> Self {
        Self(
            windows
                .iter()
                .filter(|window| holds_for(window, app))
                .collect(),
        )
    }

    /// The windows that are open at a time. The error names the first invalid one.
    pub fn active(&self, now: Timestamp) -> Result<Vec<&'a SyncWindow>, String> {
        Ok(self
            .opened(now)?
            .into_iter()
            .filter(|o| o.until.is_some())
            .map(|o| o.window)
            .collect())
    }

    /// Like [`active`](Self::active), without invalid windows.
    pub fn readable(&self, now: Timestamp) -> Vec<&'a SyncWindow> {
        let opened = self.0.iter().filter_map(|window| opened(window, now).ok());
        opened
            .filter(|o| o.until.is_some())
            .map(|o| o.window)
            .collect()
    }

    /// What is wrong with the first invalid window, if there is one; no sync is permitted then.
    pub fn problem(&self) -> Option<String> {
        self.0.iter().find_map(|w| {
            let why = read(w).err()?;
            Some(format!(
                "invalid sync window '{}':'{}':'{}': {why}",
                w.kind, w.schedule, w.duration
            ))
        })
    }

    /// Whether a sync may run now. `manual`: a user requested it. `started`: it is already running,
    /// and windows with `syncOverrun` let it continue.
    pub fn can_sync(
        &self,
        manual: bool,
        started: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool, String> {
        let opened = self
            .opened(now)
            .map_err(|e| format!("invalid sync windows: {e}"))?;
        let Some(barring) = barring(&opened) else {
            return Ok(true);
        };
        if manual && barring.iter().all(|w| w.manual_sync) {
            return Ok(true);
        }
        match started.filter(|_| barring.iter().all(|w| w.sync_overrun)) {
            Some(started) => self.can_sync(manual, None, started),
            None => Ok(false),
        }
    }

    /// The next time at which a window opens or closes, so that the result may change.
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let opened = self.opened(now).ok()?;
        opened
            .iter()
            .flat_map(|o| [o.until, o.next])
            .flatten()
            .filter(|t| *t > now)
            .min()
    }

    /// How long until just after that.
    pub fn wait(&self, now: Timestamp) -> Option<Duration> {
        let wait = Duration::try_from(self.next_change(now)?.duration_since(now)).ok()?;
        Some(wait + Duration::from_millis(1))
    }

    fn opened(&self, now: Timestamp) -> Result<Vec<Opened<'a>>, String> {
        self.0.iter().map(|window| opened(window, now)).collect()
    }
}

/// The windows that block a sync: open deny windows; else, if no allow window is open, all allow
/// windows.
fn barring<'a>(opened: &[Opened<'a>]) -> Option<Vec<&'a SyncWindow>> {
    let of_kind = |kind: &str, open: bool| -> Vec<&'a SyncWindow> {
        opened
            .iter()
            .filter(|o| o.window.kind == kind && o.until.is_some() == open)
            .map(|o| o.window)
            .collect()
    };
    let denying = of_kind("deny", true);
    if !denying.is_empty() {
        return Some(denying);
    }
    let closed = of_kind("allow", false);
    (of_kind("allow", true).is_empty() && !closed.is_empty()).then_some(closed)
}

fn opened(window: &SyncWindow, now: Timestamp) -> Result<Opened<'_>, String> {
    let (schedule, length) = read(window)?;
    // The schedule uses the window's current UTC offset; a daylight saving change within the window
    // does not move it.
    let zone = cron::time_zone(&window.time_zone).unwrap_or(TimeZone::UTC);
    let shift = SignedDuration::from_secs(zone.to_offset(now).seconds().into());
    let shifted = |time: Timestamp| time.checked_add(shift).ok();
    let back = |time: Timestamp| time.checked_sub(shift).ok();
    let next_after = |time: Timestamp| {
        shifted(time)
            .and_then(|t| schedule.next(t, &TimeZone::UTC))
            .and_then(back)
    };
    let began = now
        .checked_sub(length)
        .ok()
        .and_then(next_after)
        .filter(|began| *began < now);
    Ok(Opened {
        window,
        until: began.and_then(|b| b.checked_add(length).ok()),
        next: next_after(now),
    })
}

fn read(window: &SyncWindow) -> Result<(Schedule, SignedDuration), String> {
    let schedule = Schedule::parse_fields(&window.schedule)
        .map_err(|e| format!("cannot parse schedule '{}': {e}", window.schedule))?;
    let length = duration::parse(&window.duration)
        .map_err(|e| format!("cannot parse duration '{}': {e}", window.duration))?;
    Ok((schedule, SignedDuration::from_nanos(length)))
}

/// Validates a window, with the API's message when a project is saved.
pub fn check(window: &SyncWindow) -> Result<(), String> {
    if !matches!(window.kind.as_str(), "allow" | "deny") {
        return Err(format!(
            "kind '{}' mismatch: can only be allow or deny",
            window.kind
        ));
    }
    read(window)?;
    if window.description.len() > 255 {
        return Err("description must not exceed 255 characters".to_owned());
    }
    Ok(())
}

fn holds_for(window: &SyncWindow, app: &Application) -> bool {
    let destination = &app.spec.destination;
    let any = |patterns: &[String], value: &str| patterns.iter().any(|p| glob(p, value));
    // A destination has either a name or a server: the other one is empty and matches nothing.
    let cluster = [&destination.name, &destination.server]
        .into_iter()
        .any(|c| !c.is_empty() && any(&window.clusters, c));
    let conditions = [
        (
            &window.applications,
            any(&window.applications, &app.metadata.name),
        ),
        (&window.clusters, cluster),
        (
            &window.namespaces,
            any(&window.namespaces, &destination.namespace),
        ),
    ];
    let mut set = conditions
        .iter()
        .filter(|(patterns, _)| !patterns.is_empty())
        .map(|(_, fits)| *fits)
        .peekable();
    match window.and_operator {
        true => set.peek().is_some() && set.all(|fits| fits),
        false => set.any(|fits| fits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-03-02T{text}:00Z").parse().expect(text)
    }

    /// `kind schedule duration [flags]`, for every Application.
    fn window(text: &str) -> SyncWindow {
        let parts: Vec<&str> = text.split('|').map(str::trim).collect();
        let has = |flag: &str| parts.get(3).is_some_and(|f| f.contains(flag));
        SyncWindow {
            kind: parts[0].into(),
            schedule: parts[1].into(),
            duration: parts[2].into(),
            manual_sync: has("manual"),
            sync_overrun: has("overrun"),
            applications: vec!["*".into()],
            ..SyncWindow::default()
        }
    }

    fn answer(windows: &[&str], manual: bool, started: Option<&str>, now: &str) -> bool {
        let windows: Vec<SyncWindow> = windows.iter().map(|w| window(w)).collect();
        Windows(windows.iter().collect())
            .can_sync(manual, started.map(at), at(now))
            .expect("readable windows")
    }

    const NIGHT: &str = "allow | 0 22 * * * | 2h";
    const LUNCH: &str = "deny | 0 12 * * * | 1h";

    #[test]
    fn windows_allow_and_deny() {
        let auto = |windows: &[&str], now: &str| answer(windows, false, None, now);
        assert!(auto(&[], "10:00"), "without windows everything is allowed");
        assert!(auto(&[LUNCH], "11:59") && !auto(&[LUNCH], "12:01") && auto(&[LUNCH], "13:01"));
        assert!(!auto(&[NIGHT], "21:59") && auto(&[NIGHT], "22:01") && auto(&[NIGHT], "23:59"));
        assert!(auto(&[NIGHT, LUNCH], "22:30") && !auto(&[NIGHT, LUNCH], "12:30"));
        let always = "allow | * * * * * | 24h";
        assert!(
            !auto(&[always, LUNCH], "12:30"),
            "a window that denies wins"
        );
        assert!(
            auto(&[NIGHT, always], "10:00"),
            "one open window that allows is enough"
        );
    }

    #[test]
    fn manual_syncs_pass_when_every_barring_window_says_so() {
        let manual = |windows: &[&str], now: &str| answer(windows, true, None, now);
        assert!(!manual(&[LUNCH], "12:30") && !manual(&[NIGHT], "10:00"));
        let (lunch, night) = (
            "deny | 0 12 * * * | 1h | manual",
            "allow | 0 22 * * * | 2h | manual",
        );
        assert!(manual(&[lunch], "12:30") && manual(&[night], "10:00"));
        assert!(!answer(&[lunch], false, None, "12:30"));
        assert!(!manual(&[lunch, LUNCH], "12:30") && !manual(&[night, NIGHT], "10:00"));
        assert!(
            manual(&[lunch, NIGHT], "12:30"),
            "only the denying window bars"
        );
    }

    #[test]
    fn what_began_when_it_was_allowed_may_go_on_with_overrun() {
        let (lunch, night) = (
            "deny | 0 12 * * * | 1h | overrun",
            "allow | 0 22 * * * | 1h | overrun",
        );
        assert!(
            answer(&[lunch], false, Some("11:55"), "12:05")
                && !answer(&[LUNCH], false, Some("11:55"), "12:05")
        );
        assert!(
            !answer(&[lunch], false, Some("12:02"), "12:05"),
            "it began within the window"
        );
        assert!(
            answer(&[night], false, Some("22:55"), "23:05")
                && !answer(&[night], false, Some("21:55"), "23:05")
        );
        assert!(!answer(&[lunch, LUNCH], false, Some("11:55"), "12:05"));
    }

    #[test]
    fn the_schedule_is_in_the_windows_zone() {
        let mut tokyo = window(LUNCH);
        tokyo.time_zone = "Asia/Tokyo".into();
        let windows = Windows(vec![&tokyo]);
        assert_eq!(windows.can_sync(false, None, at("03:30")), Ok(false));
        assert_eq!(windows.can_sync(false, None, at("12:30")), Ok(true));
        tokyo.time_zone = "Nowhere".into();
        assert_eq!(
            Windows(vec![&tokyo]).can_sync(false, None, at("12:30")),
            Ok(false),
            "an unknown zone is UTC"
        );
    }

    #[test]
    fn the_answer_may_change_when_a_window_opens_or_ends() {
        let (night, lunch) = (window(NIGHT), window(LUNCH));
        let windows = Windows(vec![&night, &lunch]);
        for (now, next) in [("10:00", "12:00"), ("12:30", "13:00"), ("13:30", "22:00")] {
            assert_eq!(windows.next_change(at(now)), Some(at(next)), "{now}");
        }
        assert_eq!(
            windows.next_change(at("12:00")),
            Some(at("22:00")),
            "it is not open in its first instant"
        );
        assert_eq!(Windows::default().next_change(at("10:00")), None);
    }

    #[test]
    fn a_window_is_open_after_its_first_instant_and_before_its_last() {
        let (night, lunch) = (window(NIGHT), window(LUNCH));
        let windows = Windows(vec![&night, &lunch]);
        let kinds = |now: Timestamp| {
            windows
                .active(now)
                .expect("readable")
                .iter()
                .map(|w| w.kind.as_str())
                .collect::<Vec<_>>()
        };
        let instant = SignedDuration::from_millis(1);
        assert_eq!(
            (kinds(at("12:00")), kinds(at("12:00") + instant)),
            (vec![], vec!["deny"])
        );
        assert_eq!(
            (kinds(at("13:00") - instant), kinds(at("13:00"))),
            (vec!["deny"], vec![])
        );
        assert_eq!(kinds(at("22:30")), ["allow"]);
        let until = windows.wait(at("11:00"));
        assert_eq!(
            until,
            Some(Duration::from_hours(1) + Duration::from_millis(1)),
            "just after it opens"
        );
        assert_eq!(Windows::default().wait(at("11:00")), None);
    }

    #[test]
    fn a_description_has_a_limit() {
        let mut long = window(LUNCH);
        long.description = "x".repeat(255);
        assert_eq!(check(&long), Ok(()));
        long.description.push('x');
        assert_eq!(
            check(&long),
            Err("description must not exceed 255 characters".to_owned())
        );
    }

    #[test]
    fn a_window_that_cannot_be_read_bars_everything_and_is_named() {
        let table = [
            (
                "deny | @daily | 1h",
                "cannot parse schedule '@daily': parser does not accept descriptors: @daily",
            ),
            (
                "allow | 0 12 * * * | soon",
                "cannot parse duration 'soon': time: invalid duration \"soon\"",
            ),
        ];
        for (text, why) in table {
            let broken = window(text);
            assert_eq!(check(&broken), Err(why.to_owned()));
            assert_eq!(
                Windows(vec![&broken]).can_sync(true, None, at("10:00")),
                Err(format!("invalid sync windows: {why}"))
            );
        }
        let odd = window("maybe | 0 12 * * * | 1h");
        assert_eq!(
            check(&odd),
            Err("kind 'maybe' mismatch: can only be allow or deny".to_owned())
        );
    }

    #[test]
    fn windows_hold_for_applications_clusters_and_namespaces() {
        let mut app = Application::default();
        app.metadata.name = "web".into();
        app.spec.destination.server = "https://prod".into();
        app.spec.destination.namespace = "shop".into();
        let list = |s: &str| s.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        // (applications, clusters, namespaces, any, all)
        for (applications, clusters, namespaces, any, all) in [
            ("", "", "", false, false),
            ("web", "", "", true, true),
            ("w*", "other", "", true, false),
            ("other", "https://*", "", true, false),
            ("web", "https://prod", "shop", true, true),
            ("web", "https://prod", "other", true, false),
            ("", "", "sh?p", true, true),
            ("other", "", "", false, false),
        ] {
            for (and_operator, expected) in [(false, any), (true, all)] {
                let (applications, clusters, namespaces) =
                    (list(applications), list(clusters), list(namespaces));
                let window = SyncWindow {
                    applications,
                    clusters,
                    namespaces,
                    and_operator,
                    ..SyncWindow::default()
                };
                assert_eq!(
                    Windows::of(std::slice::from_ref(&window), &app).0.len(),
                    usize::from(expected),
                    "{window:?}"
                );
            }
        }
    }
}
