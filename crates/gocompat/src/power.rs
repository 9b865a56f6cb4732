//! Go's `math.Pow`, whose last digits differ from those of the C library.
//!
//! Main function: [`pow`].

/// From here on every exponent is even, and the result is 0, 1 or infinite.
const HUGE: f64 = 9_223_372_036_854_775_808.0;

/// Exponents of two beyond this one overflow in any case.
const MAX_EXPONENT: i32 = 1 << 12;

/// `x` to the power of `y`: repeated squaring for the whole part of `y`, logarithms for the rest.
pub(crate) fn pow(x: f64, y: f64) -> f64 {
    let special = !x.is_finite() || !y.is_finite() || x == 0.0 || x == 1.0 || y == 0.0;
    if special || y.abs() >= HUGE {
        // Both libraries follow IEEE 754 here.
        return x.powf(y);
    }
    if y == 0.5 {
        return x.sqrt();
    }
    if y == -0.5 {
        return 1.0 / x.sqrt();
    }
    let (mut whole, mut rest) = (y.abs().trunc(), y.abs().fract());
    if rest != 0.0 && x < 0.0 {
        return f64::NAN;
    }
    let mut fraction = 1.0;
    if rest != 0.0 {
        if rest > 0.5 {
            rest -= 1.0;
            whole += 1.0;
        }
        fraction = (rest * x.ln()).exp();
    }
    let mut exponent = 0;
    let (mut square, mut square_exponent) = frexp(x);
    let mut bits = whole as u64;
    while bits != 0 {
        if square_exponent.abs() > MAX_EXPONENT {
            exponent += square_exponent;
            break;
        }
        if bits & 1 == 1 {
            fraction *= square;
            exponent += square_exponent;
        }
        square *= square;
        square_exponent *= 2;
        if square < 0.5 {
            square += square;
            square_exponent -= 1;
        }
        bits >>= 1;
    }
    if y < 0.0 {
        ldexp(1.0 / fraction, -exponent)
    } else {
        ldexp(fraction, exponent)
    }
}

/// A fraction from a half to one, and the exponent of two that it is multiplied with.
fn frexp(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    // A subnormal number has no exponent of its own.
    let (x, scaled) = if x.abs() < f64::MIN_POSITIVE {
        (x * (1_u64 << 52) as f64, -52)
    } else {
        (x, 0)
    };
    let bits = x.to_bits();
    let exponent = i32::try_from((bits >> 52) & 0x7ff).unwrap_or(0) - 1022;
    let fraction = f64::from_bits((bits & !(0x7ff << 52)) | (1022 << 52));
    (fraction, exponent + scaled)
}

/// `fraction * 2^exponent`, rounded once.
fn ldexp(fraction: f64, exponent: i32) -> f64 {
    if fraction == 0.0 || !fraction.is_finite() {
        return fraction;
    }
    let (fraction, own) = frexp(fraction);
    // The stored exponent is that of a mantissa from one to two.
    let exponent = exponent + own - 1;
    if exponent < -1075 {
        return 0_f64.copysign(fraction);
    }
    if exponent > 1023 {
        return f64::INFINITY.copysign(fraction);
    }
    let (exponent, scale) = if exponent < -1022 {
        (exponent + 53, 1.0 / (1_u64 << 53) as f64)
    } else {
        (exponent, 1.0)
    };
    let biased = u64::try_from(exponent + 1023).unwrap_or(0);
    f64::from_bits((fraction.to_bits() & !(0x7ff << 52)) | (biased << 52)) * scale
}
