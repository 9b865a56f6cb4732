//! Scenarios that differ from the recorded ones on purpose. Main function: [`reason`].

/// By id.
const INTENDED: [(&str, &str); 0] = [];

pub fn reason(id: &str) -> Option<&'static str> {
    let found = INTENDED.iter().find(|(known, _)| *known == id);
    found.map(|(_, reason)| *reason)
}
