//! Whether a text is a cron schedule, in the words of the parser that Kubernetes uses. Main function: [`parse`].

/// A field: its least and greatest number, and names for numbers.
struct Bounds(u64, u64, &'static [&'static str]);

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Bounds; 5] = [Bounds(0, 59, &[]), Bounds(0, 23, &[]), Bounds(1, 31, &[]), Bounds(1, 12, &MONTHS), Bounds(0, 6, &DAYS)];
const DESCRIPTORS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
/// The first parts of names in the time zone database, and the names without parts.
const ZONES: &str = "Africa America Antarctica Arctic Asia Atlantic Australia Brazil Canada Chile Etc Europe Indian Mexico Pacific US";
const PLAIN_ZONES: &str = "CET CST6CDT Cuba EET EST EST5EDT Egypt Eire Factory GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong \
                           Iceland Iran Israel Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland \
                           Portugal ROC ROK Singapore Turkey UCT UTC Universal W-SU WET Zulu";

/// Whether it can be a time zone. Places are not looked up: the server carries no time zone database.
pub fn is_time_zone(name: &str) -> bool {
    match name.split_once('/') {
        Some((area, place)) => ZONES.split(' ').any(|z| z == area) && place.starts_with(|c: char| c.is_ascii_uppercase()),
        None => PLAIN_ZONES.split_whitespace().any(|z| z == name),
    }
}

/// Why a text is not a schedule.
pub fn parse(text: &str) -> Result<(), String> {
    let mut text = text;
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        let name = text.split_once('=').map_or("", |(_, rest)| rest);
        let Some((zone, rest)) = name.split_once(' ') else {
            // The parser panics on this; the API server says how.
            let start = text.len() - name.len();
            return Err(format!("invalid schedule format: runtime error: slice bounds out of range [{start}:-1]"));
        };
        if !zone.is_empty() && zone != "Local" && !is_time_zone(zone) {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
        }
        text = rest.trim();
    }
    if text.starts_with('@') {
        return descriptor(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        field.split(',').filter(|part| !part.is_empty()).try_for_each(|part| range(part, bounds))?;
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(duration) => match tiphys_gocompat::duration::parse(duration) {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("failed to parse duration {text}: time: invalid duration \"{duration}\"")),
        },
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(n) if n < 0 => Err(format!("negative number ({n}) not allowed: {text}")),
        Ok(n) => Ok(n.unsigned_abs()),
        Err(error) => {
            let why = match error.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing \"{text}\": {why}"))
        }
    }
}

fn named(text: &str, bounds: &Bounds) -> Result<u64, String> {
    match bounds.2.iter().position(|name| text.eq_ignore_ascii_case(name)) {
        Some(i) => Ok(i as u64 + bounds.0),
        None => number(text),
    }
}

fn range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = if matches!(ends[0], "*" | "?") {
        (bounds.0, bounds.1)
    } else {
        let start = named(ends[0], bounds)?;
        match ends[..] {
            [_] => (start, start),
            [_, end] => (start, named(end, bounds)?),
            _ => return Err(format!("too many hyphens: {text}")),
        }
    };
    let step = match parts[..] {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if ends.len() == 1 {
                end = bounds.1;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    match () {
        () if start < bounds.0 => Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.0)),
        () if end > bounds.1 => Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.1)),
        () if start > end => Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}")),
        () if step == 0 => Err(format!("step of range should be a positive number: {text}")),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_the_parser_of_kubernetes_does() {
        for good in ["*/5 * * * *", "@daily", "@every 1h", "0 0 1 jan sun-fri", "?,1 2-4/2 * * *"] {
            assert_eq!(parse(good), Ok(()), "{good}");
        }
        let table = [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("@often", "unrecognized descriptor: @often"),
        ];
        for (text, why) in table {
            assert_eq!(parse(text), Err(why.to_owned()), "{text}");
        }
    }
}
