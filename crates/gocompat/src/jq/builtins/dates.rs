//! Times: seconds since 1970, lists from year to day of the year, and texts. All in UTC.
//!
//! Main value: [`TABLE`]. There is no clock: `now` does not exist.

use super::{Native, fails_on, refuses, refuses_with};
use crate::jq::{
    fault::Out,
    number::{as_float, as_int},
    text::preview,
    value::Val,
};
use jiff::{
    Timestamp, ToSpan, Zoned,
    civil::{DateTime, date},
    fmt::strtime,
    tz::{Offset, TimeZone},
};

pub const TABLE: &[Native] = &[
    Native::flat("gmtime", 0, |_, v, _| broken_down("gmtime", v)),
    Native::flat("localtime", 0, |_, v, _| broken_down("localtime", v)),
    Native::flat("mktime", 0, |_, v, _| match v {
        Val::List(_) => match moment(v) {
            Some(moment) => Ok(seconds(&moment)),
            None => fails_on("mktime", v, NOT_A_TIME),
        },
        v => refuses("mktime", v),
    }),
    Native::deep("strftime", 1, |_, v, a| formatted("strftime", v, &a[0])),
    Native::deep("strflocaltime", 1, |_, v, a| {
        formatted("strflocaltime", v, &a[0])
    }),
    Native::deep("strptime", 1, |_, v, a| parsed(v, &a[0])),
];

const NOT_A_TIME: &str = "expected an array of 8 numbers";

fn seconds(moment: &Zoned) -> Val {
    let timestamp = moment.timestamp();
    Val::Float(timestamp.as_second() as f64 + f64::from(timestamp.subsec_nanosecond()) / 1e9)
}

/// The time this many seconds after 1970.
fn at(seconds: f64) -> Option<Zoned> {
    let nanos = ((seconds - seconds.floor()) * 1e9) as i32;
    Some(
        Timestamp::new(seconds.floor() as i64, nanos)
            .ok()?
            .to_zoned(TimeZone::UTC),
    )
}

fn broken_down(name: &str, value: &Val) -> Out {
    match as_float(value).and_then(at) {
        Some(moment) => Ok(fields(&moment)),
        None => refuses(name, value),
    }
}

fn fields(moment: &Zoned) -> Val {
    let second = f64::from(moment.second()) + f64::from(moment.subsec_nanosecond()) / 1e9;
    let weekday = moment.weekday().to_sunday_zero_offset();
    let whole = |n: i64| Val::Int(n);
    Val::list(vec![
        whole(moment.year().into()),
        whole(i64::from(moment.month()) - 1),
        whole(moment.day().into()),
        whole(moment.hour().into()),
        whole(moment.minute().into()),
        Val::Float(second),
        whole(weekday.into()),
        whole(i64::from(moment.day_of_year()) - 1),
    ])
}

/// The time for a list of year, month, day, hour, minute and second; each may exceed its unit's
/// range.
fn moment(value: &Val) -> Option<Zoned> {
    let list = value.as_list()?;
    if !list.iter().take(8).all(Val::is_number) {
        return None;
    }
    let part = |at: usize| list.get(at).and_then(as_int).unwrap_or(0);
    let exact = list.get(5).and_then(as_float).unwrap_or(0.0);
    let months = part(0).checked_mul(12)?.checked_add(part(1))?;
    let first = date(
        i16::try_from(months.div_euclid(12))
            .ok()
            .filter(|y| (-9999..=9999).contains(y))?,
        months.rem_euclid(12) as i8 + 1,
        1,
    );
    let span = (|| {
        let span = 0
            .days()
            .try_days(part(2).checked_sub(1)?)
            .ok()?
            .try_hours(part(3))
            .ok()?;
        let nanos = ((exact - exact.floor()) * 1e9) as i64;
        span.try_minutes(part(4))
            .ok()?
            .try_seconds(exact.trunc() as i64)
            .ok()?
            .try_nanoseconds(nanos)
            .ok()
    })()?;
    let start: DateTime = first.to_datetime(jiff::civil::Time::midnight());
    start.checked_add(span).ok()?.to_zoned(TimeZone::UTC).ok()
}

fn formatted(name: &str, value: &Val, format: &Val) -> Out {
    let list = match as_float(value) {
        Some(_) => broken_down(name, value)?,
        None => value.clone(),
    };
    let (Val::List(_), Some(text)) = (&list, format.as_text()) else {
        return refuses_with(name, &list, format);
    };
    let with = format!("{name}({})", preview(format));
    match moment(&list) {
        Some(moment) => match strtime::format(text, &moment) {
            Ok(shown) => Ok(Val::text(shown)),
            Err(why) => fails_on(&with, value, &why.to_string()),
        },
        None => fails_on(&with, value, NOT_A_TIME),
    }
}

/// Parses a text by a format. Parts that the format does not contain default to the start of 1900;
/// `%z` also accepts a Z.
fn parsed(value: &Val, format: &Val) -> Out {
    let (Some(text), Some(pattern)) = (value.as_text(), format.as_text()) else {
        return refuses_with("strptime", value, format);
    };
    let utc = text
        .strip_suffix('Z')
        .filter(|_| pattern.ends_with("%z"))
        .map(|text| format!("{text}+0000"));
    let text = utc.as_deref().unwrap_or(text);
    let read = strtime::parse(pattern.replace("%Z", "UTC"), text).and_then(|mut fields| {
        if fields.timestamp().is_some() {
            return fields
                .to_timestamp()
                .map(|timestamp| timestamp.to_zoned(TimeZone::UTC));
        }
        if fields.year().is_none() {
            fields.set_year(Some(1900))?;
        }
        if fields.month().is_none() && fields.day_of_year().is_none() {
            fields.set_month(Some(1))?;
        }
        if fields.day().is_none() && fields.day_of_year().is_none() {
            fields.set_day(Some(1))?;
        }
        let offset = fields.offset().unwrap_or(Offset::UTC);
        let time = fields.to_time().unwrap_or(jiff::civil::Time::midnight());
        let datetime = fields.to_date()?.to_datetime(time);
        offset
            .to_timestamp(datetime)
            .map(|timestamp| timestamp.to_zoned(TimeZone::UTC))
    });
    match read {
        Ok(moment) => Ok(fields(&moment)),
        Err(why) => fails_on(
            &format!("strptime({})", preview(format)),
            value,
            &why.to_string(),
        ),
    }
}
