//! Decimal numbers of any size, for arithmetic without binary rounding, as shopspring/decimal does
//! it.
//!
//! Main type: [`Decimal`].

use crate::template::{Error, Value, format};
use num_bigint::BigInt;

/// Digits after the point that a division keeps.
const PRECISION: i64 = 16;

/// `value * 10^exponent`
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    value: BigInt,
    exponent: i64,
}

impl Decimal {
    /// The shortest decimal that parses to the float.
    pub fn from_float(float: f64) -> Result<Self, Error> {
        if !float.is_finite() {
            let shown = format::sprint([&Value::Float(float)])?;
            return Err(Error::function(format!(
                "Cannot create a Decimal from {}",
                String::from_utf8_lossy(&shown)
            )));
        }
        let text = format!("{float:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let fraction = mantissa
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len());
        let value = mantissa.replace('.', "").parse().unwrap_or_default();
        Ok(Self {
            value,
            exponent: exponent.parse().unwrap_or(0) - fraction as i64,
        })
    }

    pub fn to_float(&self) -> f64 {
        format!("{}e{}", self.value, self.exponent)
            .parse()
            .unwrap_or(f64::NAN)
    }

    /// The value with a smaller exponent.
    fn scaled(&self, exponent: i64) -> BigInt {
        &self.value * power(self.exponent - exponent)
    }

    pub fn add(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self {
            value: self.scaled(exponent) + other.scaled(exponent),
            exponent,
        }
    }

    pub fn sub(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self {
            value: self.scaled(exponent) - other.scaled(exponent),
            exponent,
        }
    }

    pub fn mul(&self, other: &Self) -> Self {
        Self {
            value: &self.value * &other.value,
            exponent: self.exponent + other.exponent,
        }
    }

    /// Rounded half away from zero.
    pub fn div(&self, other: &Self) -> Result<Self, Error> {
        if other.value == BigInt::ZERO {
            return Err(Error::function("decimal division by 0"));
        }
        let shift = self.exponent - other.exponent + PRECISION;
        let over = &self.value * power(shift);
        let under = &other.value * power(-shift);
        let mut value = &over / &under;
        let rest: BigInt = (&over % &under) * 2;
        if rest.magnitude() >= under.magnitude() {
            let positive = (over > BigInt::ZERO) == (under > BigInt::ZERO);
            value += if positive { 1 } else { -1 };
        }
        Ok(Self {
            value,
            exponent: -PRECISION,
        })
    }
}

/// A power of ten; 1 for negative exponents.
fn power(exponent: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).unwrap_or(0))
}
