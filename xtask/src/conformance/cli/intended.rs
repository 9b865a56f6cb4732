//! Scenarios that differ from the recorded ones on purpose. Main function: [`reason`].

/// By id.
const INTENDED: [(&str, &str); 8] = [
    ("logs", LOGS),
    ("rollback-no-id", UNCHANGED),
    ("sync-plain", UNCHANGED),
    ("sync-revision", UNCHANGED),
    ("sync-strategy", UNCHANGED),
    ("version", BUILD),
    ("version-no-server", BUILD),
    ("version-unreachable", BUILD),
];
const LOGS: &str = "simulated pods log other lines";
const UNCHANGED: &str = "a Secret with stringData that is applied again has not changed";
const BUILD: &str = "our program is not built by Go, and says how it was";

pub fn reason(id: &str) -> Option<&'static str> {
    let found = INTENDED.iter().find(|(known, _)| *known == id);
    found.map(|(_, reason)| *reason)
}
