//! What both databases have in common. Main types: [`Value`], [`Row`] and [`Sql`].
//!
//! A statement has `$1`, `$2` … for its parameters, in this order; nothing else is ever put into
//! its text that came from outside.

use crate::{CatalogError, model::storable};

/// A parameter, or what is in a column. A text has no NUL, which PostgreSQL refuses: it becomes
/// what the catalogue stores in its place, so that searches find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Null,
    Int(i64),
    Text(String),
    /// A column of many rows; PostgreSQL only, see [`rows`].
    Column(Vec<Value>),
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(if text.contains('\0') {
            storable(&text)
        } else {
            text
        })
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::Null, Self::from)
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Self::Null, Self::Int)
    }
}

/// The columns of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row(pub Vec<Value>);

impl Row {
    /// The text of a column; empty for `NULL`.
    pub fn text(&self, column: usize) -> &str {
        match self.0.get(column) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    pub fn optional_text(&self, column: usize) -> Option<String> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }

    /// The number in a column; zero for `NULL`.
    pub fn int(&self, column: usize) -> i64 {
        self.optional_int(column).unwrap_or_default()
    }

    pub fn optional_int(&self, column: usize) -> Option<i64> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        }
    }
}

/// Which database it is, where that makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

/// A transaction.
pub trait Sql {
    fn dialect(&self) -> Dialect;

    /// Runs a statement; returns how many rows it changed.
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, CatalogError>;

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, CatalogError>;

    /// Runs statements without parameters.
    fn script(&mut self, sql: &str) -> Result<(), CatalogError>;
}

/// Adds texts to the values of a statement; returns their places, as `$3, $4`. The last text is
/// repeated until there are as many as a power of two: a list of any length then makes few
/// statements, which stay prepared.
pub fn list<'t>(values: &mut Vec<Value>, texts: impl IntoIterator<Item = &'t str>) -> String {
    let first = values.len() + 1;
    values.extend(texts.into_iter().map(Value::from));
    let count = values.len() + 1 - first;
    let last = values.last().cloned().filter(|_| count > 0);
    let padded = count.next_power_of_two();
    values.extend(std::iter::repeat_n(
        last.unwrap_or(Value::Null),
        padded - count,
    ));
    places(first, padded)
}

/// `$FIRST, $FIRST+1, …`
pub fn places(first: usize, count: usize) -> String {
    let places: Vec<String> = (first..first + count).map(|n| format!("${n}")).collect();
    places.join(", ")
}

/// What a column of [`rows`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    Text,
    Json,
}

/// Rows for an `INSERT`, with their values. Our connections to PostgreSQL have a statement planned
/// each time it runs, and planning a parameter for each value takes longer than storing the rows: a
/// column is one parameter.
pub fn rows<const N: usize>(
    dialect: Dialect,
    kinds: [Kind; N],
    rows: Vec<[Value; N]>,
) -> (String, Vec<Value>) {
    if dialect == Dialect::Sqlite {
        let row = |row| format!("({})", places(row * N + 1, N));
        let tuples: Vec<String> = (0..rows.len()).map(row).collect();
        let text = format!("VALUES {}", tuples.join(", "));
        return (text, rows.into_iter().flatten().collect());
    }
    let mut columns: [Vec<Value>; N] = std::array::from_fn(|_| Vec::with_capacity(rows.len()));
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    let array = |(n, kind)| match kind {
        Kind::Int => format!("${n}::int8[]"),
        Kind::Text => format!("${n}::text[]"),
        Kind::Json => format!("${n}::jsonb[]"),
    };
    let arrays: Vec<String> = (1..).zip(kinds).map(array).collect();
    let text = format!("SELECT * FROM unnest({})", arrays.join(", "));
    (text, columns.map(Value::Column).into())
}

/// Divides rows into parts whose lengths are powers of two, the longest first.
pub fn parts<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let length = 1 << rows.len().checked_ilog2()?;
        let part;
        (part, rows) = rows.split_at(length);
        Some(part)
    })
}

/// Values of several types, as parameters.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::sql::Value::from($value)),*] };
}
pub(crate) use values;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_a_parameter_for_each_value_or_column() {
        let two = || {
            let row = |n: i64, text: Option<&str>| [n.into(), text.map(str::to_owned).into()];
            vec![row(1, Some("a")), row(2, None)]
        };
        let kinds = [Kind::Int, Kind::Json];
        let flat = values![1, "a", 2, None::<String>].to_vec();
        let sqlite = rows(Dialect::Sqlite, kinds, two());
        assert_eq!(sqlite, ("VALUES ($1, $2), ($3, $4)".to_owned(), flat));
        let columns = [
            Value::Column(values![1, 2].to_vec()),
            Value::Column(values!["a", None::<String>].to_vec()),
        ];
        let text = "SELECT * FROM unnest($1::int8[], $2::jsonb[])".to_owned();
        assert_eq!(
            rows(Dialect::Postgres, kinds, two()),
            (text, columns.into())
        );
    }

    #[test]
    fn lists_of_many_lengths_are_few_statements() {
        for (texts, wanted) in [
            (0, "$2"),
            (1, "$2"),
            (2, "$2, $3"),
            (3, "$2, $3, $4, $5"),
            (4, "$2, $3, $4, $5"),
        ] {
            let mut values = vec![Value::Int(1)];
            let texts: Vec<String> = (0..texts).map(|n| n.to_string()).collect();
            let found = list(&mut values, texts.iter().map(String::as_str));
            assert_eq!(found, wanted);
            assert_eq!(values.len(), 1 + wanted.split(", ").count());
            let last = texts.last().map_or(Value::Null, Value::from);
            assert_eq!(values.last(), Some(&last));
        }
        let rows: Vec<usize> = (0..77).collect();
        let lengths: Vec<usize> = parts(&rows).map(<[usize]>::len).collect();
        assert_eq!(lengths, [64, 8, 4, 1]);
        assert!(parts(&rows).flatten().eq(&rows));
        assert_eq!(parts(&[0; 0]).count(), 0);
    }
}
