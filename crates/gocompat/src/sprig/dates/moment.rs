//! Go's `time.Time` as a value of templates.
//!
//! Main type: [`Moment`].

use super::super::args::{Out, fails};
use super::layout::{DAYS, MONTHS, format};
use crate::template::{Call, Error, Function, INT, JsonForm, Named, Object, Type, Value};
use jiff::{SignedDuration, Span, Timestamp, civil::DateTime, tz::Offset, tz::TimeZone};
use std::rc::Rc;

static TIME: Named = Named {
    name: "time.Time",
    underlying: None,
};
static MONTH: Named = Named {
    name: "time.Month",
    underlying: Some(INT),
};
static WEEKDAY: Named = Named {
    name: "time.Weekday",
    underlying: Some(INT),
};

/// The type of a parameter for a time.
pub(in super::super) const TYPE: Type = Type::Named(&TIME);

/// A point in time in a time zone: Go's `time.Time`.
#[derive(Clone, Debug)]
pub struct Moment {
    pub at: Timestamp,
    pub zone: TimeZone,
    /// The name of a zone that is only an offset.
    pub name: Option<String>,
    /// The zone that its method `Local` gives it.
    pub local: TimeZone,
}

impl Moment {
    /// In the local zone.
    pub fn new(at: Timestamp, zone: TimeZone) -> Self {
        Self {
            at,
            local: zone.clone(),
            zone,
            name: None,
        }
    }

    /// The same with another local zone.
    #[must_use]
    pub fn with_local(self, local: TimeZone) -> Self {
        Self { local, ..self }
    }

    /// `time.ParseInLocation`, with its error texts. The zone is the local one.
    ///
    /// # Errors
    /// If the text does not have the layout.
    pub fn parse(layout: &str, text: &str, zone: &TimeZone) -> Result<Self, String> {
        let parsed = super::parse::parse(layout, text, zone)?;
        Ok(parsed.with_local(zone.clone()))
    }

    /// `Time.Format`
    pub fn format(&self, layout: &str) -> String {
        format(self, layout)
    }

    /// `Time.String`
    pub fn to_text(&self) -> String {
        format(self, "2006-01-02 15:04:05.999999999 -0700 MST")
    }

    /// `Time.IsDST`
    pub fn is_dst(&self) -> bool {
        self.zone.to_offset_info(self.at).dst().is_dst()
    }

    /// The form in JSON.
    pub fn to_rfc3339(&self) -> String {
        format(self, "2006-01-02T15:04:05.999999999Z07:00")
    }

    /// Nanoseconds since the zero value.
    pub fn since_zero(&self) -> i128 {
        self.at.as_nanosecond() - Self::zero().at.as_nanosecond()
    }

    /// Adds years, months and days; days that a month does not have overflow into the next. `None`
    /// beyond the representable range.
    pub fn add_date(&self, years: i64, months: i64, days: i64) -> Option<Self> {
        let civil = self.civil();
        let months = (i64::from(civil.year()).saturating_add(years))
            .saturating_mul(12)
            .saturating_add(i64::from(civil.month()) - 1)
            .saturating_add(months);
        let days = days.saturating_add(i64::from(civil.day()) - 1);
        let year = i16::try_from(months.div_euclid(12)).ok()?;
        let month = i8::try_from(months.rem_euclid(12) + 1).ok()?;
        let first = jiff::civil::Date::new(year, month, 1).ok()?;
        let day = first.checked_add(Span::new().try_days(days).ok()?).ok()?;
        let zoned = self.zone.to_zoned(day.to_datetime(civil.time())).ok()?;
        Some(Self {
            at: zoned.timestamp(),
            ..self.clone()
        })
    }

    /// The zero value.
    pub fn zero() -> Self {
        let first = jiff::civil::date(1, 1, 1)
            .at(0, 0, 0, 0)
            .to_zoned(TimeZone::UTC);
        Self::new(
            first.map(|zoned| zoned.timestamp()).unwrap_or_default(),
            TimeZone::UTC,
        )
    }

    pub fn civil(&self) -> DateTime {
        self.zone.to_datetime(self.at)
    }

    /// Seconds east of Greenwich.
    pub fn offset(&self) -> i32 {
        self.zone.to_offset(self.at).seconds()
    }

    /// The abbreviation of the zone; empty if it has none.
    pub fn zone_name(&self) -> String {
        match &self.name {
            Some(name) => name.clone(),
            None => self.zone.to_offset_info(self.at).abbreviation().to_owned(),
        }
    }

    pub fn in_zone(&self, zone: TimeZone) -> Self {
        Self {
            zone,
            name: None,
            ..self.clone()
        }
    }

    /// `Time.Local`
    pub fn to_local(&self) -> Self {
        self.in_zone(self.local.clone())
    }

    /// The time plus nanoseconds; clamped to the representable range.
    pub fn after(&self, nanos: i64) -> Self {
        Self {
            at: self
                .at
                .checked_add(SignedDuration::from_nanos(nanos))
                .unwrap_or(self.at),
            ..self.clone()
        }
    }

    /// Nanoseconds from another time to this one, clamped to the range.
    pub fn since(&self, other: &Self) -> i64 {
        let nanos = self.at.as_nanosecond() - other.at.as_nanosecond();
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    pub fn value(self) -> Value {
        Value::Object(Rc::new(self))
    }

    /// The time in a value.
    pub fn of(value: &Value) -> Option<&Self> {
        match value {
            Value::Object(object) => object.as_any().downcast_ref(),
            _ => None,
        }
    }
}

/// A zone without a name of its own.
pub(super) fn fixed(seconds: i32) -> TimeZone {
    Offset::from_seconds(seconds).map_or(TimeZone::UTC, Offset::to_time_zone)
}

impl Object for Moment {
    fn go_type(&self) -> Type {
        TYPE
    }

    fn method(&self, name: &str) -> Option<&'static Function> {
        METHODS
            .iter()
            .find_map(|(own, function)| (*own == name).then_some(function))
    }

    fn text(&self) -> Option<String> {
        Some(self.to_text())
    }

    fn json(&self) -> JsonForm {
        JsonForm::Time(self.to_rfc3339())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// A month or a day of the week.
struct Counted(&'static Named, i64, &'static str);

impl Object for Counted {
    fn go_type(&self) -> Type {
        Type::Named(self.0)
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::int(self.1))
    }

    fn method(&self, name: &str) -> Option<&'static Function> {
        static STRING: Function = Function::new(&[], |call| match call.receiver() {
            Value::Object(object) => Ok(object.text().unwrap_or_default().into()),
            _ => Ok(Value::Nil),
        });
        (name == "String").then_some(&STRING)
    }

    fn text(&self) -> Option<String> {
        Some(self.2.to_owned())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

static METHODS: &[(&str, Function)] = &[
    (
        "Year",
        Function::new(&[], |call| Ok(Value::int(me(call)?.civil().year()))),
    ),
    (
        "Month",
        Function::new(&[], |call| {
            let month = me(call)?.civil().month();
            Ok(Value::Object(Rc::new(Counted(
                &MONTH,
                month.into(),
                MONTHS[usize::try_from(month - 1).unwrap_or(0)],
            ))))
        }),
    ),
    (
        "Day",
        Function::new(&[], |call| Ok(Value::int(me(call)?.civil().day()))),
    ),
    (
        "Weekday",
        Function::new(&[], |call| {
            let day = me(call)?.civil().weekday().to_sunday_zero_offset();
            Ok(Value::Object(Rc::new(Counted(
                &WEEKDAY,
                day.into(),
                DAYS[usize::try_from(day).unwrap_or(0)],
            ))))
        }),
    ),
    (
        "YearDay",
        Function::new(&[], |call| Ok(Value::int(me(call)?.civil().day_of_year()))),
    ),
    (
        "Hour",
        Function::new(&[], |call| Ok(Value::int(me(call)?.civil().hour()))),
    ),
    (
        "Minute",
        Function::new(&[], |call| Ok(Value::int(me(call)?.civil().minute()))),
    ),
    (
        "Second",
        Function::new(&[], |call| Ok(Value::int(me(call)?.civil().second()))),
    ),
    (
        "Nanosecond",
        Function::new(&[], |call| {
            Ok(Value::int(me(call)?.civil().subsec_nanosecond()))
        }),
    ),
    (
        "Unix",
        Function::new(&[], |call| {
            Ok(Value::int64(
                me(call)?.at.as_nanosecond().div_euclid(1_000_000_000) as i64,
            ))
        }),
    ),
    (
        "UnixMilli",
        Function::new(&[], |call| {
            Ok(Value::int64(
                me(call)?.at.as_nanosecond().div_euclid(1_000_000) as i64,
            ))
        }),
    ),
    (
        "UnixMicro",
        Function::new(&[], |call| {
            Ok(Value::int64(
                me(call)?.at.as_nanosecond().div_euclid(1000) as i64
            ))
        }),
    ),
    (
        "UnixNano",
        Function::new(&[], |call| {
            Ok(Value::int64(me(call)?.at.as_nanosecond() as i64))
        }),
    ),
    (
        "Format",
        Function::new(&[Type::String], |call| {
            Ok(format(&me(call)?, &call.text(0)?).into())
        }),
    ),
    (
        "String",
        Function::new(&[], |call| Ok(me(call)?.text().unwrap_or_default().into())),
    ),
    (
        "UTC",
        Function::new(&[], |call| Ok(me(call)?.in_zone(TimeZone::UTC).value())),
    ),
    (
        "Local",
        Function::new(&[], |call| Ok(me(call)?.to_local().value())),
    ),
    (
        "IsZero",
        Function::new(&[], |call| {
            Ok(Value::Bool(me(call)?.at == Moment::zero().at))
        }),
    ),
    (
        "IsDST",
        Function::new(&[], |call| Ok(Value::Bool(me(call)?.is_dst()))),
    ),
    (
        "Before",
        Function::new(&[TYPE], |call| {
            Ok(Value::Bool(me(call)?.at < argument(call, 0)?.at))
        }),
    ),
    (
        "After",
        Function::new(&[TYPE], |call| {
            Ok(Value::Bool(me(call)?.at > argument(call, 0)?.at))
        }),
    ),
    (
        "Equal",
        Function::new(&[TYPE], |call| {
            Ok(Value::Bool(me(call)?.at == argument(call, 0)?.at))
        }),
    ),
    ("AddDate", Function::new(&[INT, INT, INT], add_date)),
];

fn me(call: &Call<'_>) -> Result<Moment, Error> {
    Moment::of(call.receiver())
        .cloned()
        .map_or_else(|| fails("not a time"), Ok)
}

/// An argument declared as a time.
pub(super) fn argument(call: &Call<'_>, index: usize) -> Result<Moment, Error> {
    Moment::of(call.arg(index))
        .cloned()
        .map_or_else(|| fails("not a time"), Ok)
}

fn add_date(call: &mut Call<'_>) -> Out {
    let (years, months, days) = (call.integer(0)?, call.integer(1)?, call.integer(2)?);
    me(call)?
        .add_date(years, months, days)
        .map_or_else(|| fails("the date is out of range"), |at| Ok(at.value()))
}
