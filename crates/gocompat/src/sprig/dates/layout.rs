//! Go's time layouts, such as `2006-01-02 15:04:05 MST`.
//!
//! Main functions: [`format()`] and [`chunk`], which finds the next element in a layout.

use super::moment::Moment;

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(crate) const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// The elements, in order: the first one that matches is used.
const ELEMENTS: [&str; 35] = [
    "January",
    "Jan",
    "Monday",
    "Mon",
    "MST",
    "01",
    "02",
    "03",
    "04",
    "05",
    "06",
    "002",
    "15",
    "1",
    "2006",
    "2",
    "_2006",
    "_2",
    "__2",
    "3",
    "4",
    "5",
    "PM",
    "pm",
    "-070000",
    "-07:00:00",
    "-0700",
    "-07:00",
    "-07",
    "Z070000",
    "Z07:00:00",
    "Z0700",
    "Z07:00",
    "Z07",
    "",
];

/// The text before the next element, the element, and the rest. Without an element, everything is
/// before it.
pub(super) fn chunk(layout: &str) -> (&str, &str, &str) {
    for (at, _) in layout.char_indices() {
        let here = &layout[at..];
        let known = ELEMENTS.iter().find(|element| {
            let short_name = matches!(**element, "Jan" | "Mon");
            !element.is_empty()
                && here.starts_with(**element)
                && !(short_name && here[3..].starts_with(|c: char| c.is_ascii_lowercase()))
        });
        match known {
            Some(&"_2006") => return (&layout[..=at], &here[1..5], &here[5..]),
            Some(element) => {
                return (
                    &layout[..at],
                    &here[..element.len()],
                    &here[element.len()..],
                );
            }
            None => {}
        }
        if let Some(len) = fraction(here) {
            return (&layout[..at], &here[..len], &here[len..]);
        }
    }
    (layout, "", "")
}

/// The length of a leading `.000` or `,999` that is not followed by another digit.
fn fraction(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digit = *bytes.get(1).filter(|b| matches!(b, b'0' | b'9'))?;
    if !matches!(bytes[0], b'.' | b',') {
        return None;
    }
    let len = 1 + bytes[1..].iter().take_while(|b| **b == digit).count();
    (!bytes.get(len).is_some_and(u8::is_ascii_digit)).then_some(len)
}

/// `Time.Format`
pub(super) fn format(moment: &Moment, layout: &str) -> String {
    let mut out = String::new();
    let mut rest = layout;
    loop {
        let (before, element, after) = chunk(rest);
        out.push_str(before);
        if element.is_empty() {
            return out;
        }
        out.push_str(&shown(moment, element));
        rest = after;
    }
}

fn shown(moment: &Moment, element: &str) -> String {
    let (civil, offset) = (moment.civil(), moment.offset());
    let twelve = match civil.hour() % 12 {
        0 => 12,
        hour => hour,
    };
    let month = MONTHS[usize::try_from(civil.month() - 1).unwrap_or(0)];
    let day = DAYS[usize::try_from(civil.weekday().to_sunday_zero_offset()).unwrap_or(0)];
    match element {
        "2006" if civil.year() < 0 => format!("-{:04}", -civil.year()),
        "2006" => format!("{:04}", civil.year()),
        "06" => format!("{:02}", civil.year().rem_euclid(100)),
        "January" => month.to_owned(),
        "Jan" => month[..3].to_owned(),
        "1" => civil.month().to_string(),
        "01" => format!("{:02}", civil.month()),
        "Monday" => day.to_owned(),
        "Mon" => day[..3].to_owned(),
        "2" => civil.day().to_string(),
        "_2" => format!("{:2}", civil.day()),
        "02" => format!("{:02}", civil.day()),
        "__2" => format!("{:3}", civil.day_of_year()),
        "002" => format!("{:03}", civil.day_of_year()),
        "15" => format!("{:02}", civil.hour()),
        "3" => twelve.to_string(),
        "03" => format!("{twelve:02}"),
        "4" => civil.minute().to_string(),
        "04" => format!("{:02}", civil.minute()),
        "5" => civil.second().to_string(),
        "05" => format!("{:02}", civil.second()),
        "PM" => ["AM", "PM"][usize::from(civil.hour() >= 12)].to_owned(),
        "pm" => ["am", "pm"][usize::from(civil.hour() >= 12)].to_owned(),
        "MST" => match moment.zone_name() {
            name if name.is_empty() => offset_text("-0700", offset),
            name => name,
        },
        zone if zone.starts_with('Z') && offset == 0 => "Z".to_owned(),
        zone if zone.starts_with(['Z', '-']) => offset_text(zone, offset),
        digits => fraction_text(digits, civil.subsec_nanosecond()),
    }
}

/// An offset in the form of `-0700` or a similar element.
fn offset_text(element: &str, offset: i32) -> String {
    let size = offset.unsigned_abs();
    let (hours, minutes, seconds) = (size / 3600, size / 60 % 60, size % 60);
    let sign = if offset < 0 { '-' } else { '+' };
    match &element[1..] {
        "07" => format!("{sign}{hours:02}"),
        "0700" => format!("{sign}{hours:02}{minutes:02}"),
        "07:00" => format!("{sign}{hours:02}:{minutes:02}"),
        "070000" => format!("{sign}{hours:02}{minutes:02}{seconds:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// The fraction of a second with its separator; with nines, trailing zeros are omitted.
fn fraction_text(element: &str, nanos: i32) -> String {
    let digits = format!("{nanos:09}");
    let shown: String = digits
        .chars()
        .chain(std::iter::repeat('0'))
        .take(element.len() - 1)
        .collect();
    let shown = if element.ends_with('9') {
        shown.trim_end_matches('0')
    } else {
        &shown
    };
    if shown.is_empty() {
        String::new()
    } else {
        format!("{}{shown}", &element[..1])
    }
}
