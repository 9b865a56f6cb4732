//! Times as Go prints them.

/// What Go prints of a time in one of YAML's layouts.
pub(super) fn rfc3339(text: &str) -> String {
    let mut parts = text.splitn(3, '-');
    let year = parts.next().unwrap_or_default();
    let month = parts.next().unwrap_or_default();
    let rest = parts.next().unwrap_or_default();
    let end = rest
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(rest.len());
    let (day, rest) = rest.split_at(end);
    let time = rest.get(1..).unwrap_or_default();
    let zone_at = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
    let mut clock = clock.split(':').map(|part| format!("{part:0>2}"));
    let mut next = || clock.next().unwrap_or_else(|| "00".to_owned());
    let (hour, minute, second) = (next(), next(), next());
    let fraction = fraction.get(..9).unwrap_or(fraction).trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let zone = match zone {
        "" | "+00:00" | "-00:00" => "Z",
        zone => zone,
    };
    let hour = if hour == "0" { "00".to_owned() } else { hour };
    format!("{year}-{month:0>2}-{day:0>2}T{hour}:{minute}:{second}{point}{fraction}{zone}")
}
