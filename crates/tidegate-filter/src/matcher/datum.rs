//! Values in a form in which a plain comparison of numbers or bytes has the same result as
//! PostgreSQL's comparison of the values.

use std::borrow::Cow;

/// A value with the order and equality that PostgreSQL defines for its type. Only values of the
/// same type are comparable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Datum<'a> {
    Int(i64),
    Wide(i128),
    Bytes(Cow<'a, [u8]>),
    /// An enum label that is not among the known labels: it is newer than the schema, or a known
    /// label was renamed.
    UnknownLabel(Cow<'a, [u8]>),
}

impl Datum<'_> {
    pub(super) fn into_owned(self) -> Datum<'static> {
        match self {
            Self::Int(number) => Datum::Int(number),
            Self::Wide(number) => Datum::Wide(number),
            Self::Bytes(bytes) => Datum::Bytes(Cow::Owned(bytes.into_owned())),
            Self::UnknownLabel(bytes) => Datum::UnknownLabel(Cow::Owned(bytes.into_owned())),
        }
    }

    /// The datum of a float. NaN equals itself and is greater than all other values; -0 equals 0.
    pub(super) fn float(value: f64) -> Self {
        if value.is_nan() {
            return Self::Int(i64::MAX);
        }
        let bits = (value + 0.0).to_bits().cast_signed();
        let magnitude = bits & i64::MAX;
        Self::Int(if bits < 0 { -magnitude } else { magnitude })
    }
}

#[cfg(test)]
mod tests {
    use super::Datum;

    #[test]
    fn floats_are_ordered_as_postgresql_orders_them() {
        let ordered = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -f64::MIN_POSITIVE,
            -5e-324,
            0.0,
            5e-324,
            1.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        for (at, one) in ordered.iter().enumerate() {
            for (beside, other) in ordered.iter().enumerate() {
                let order = Datum::float(*one).cmp(&Datum::float(*other));
                assert_eq!(order, at.cmp(&beside), "{one} and {other}");
            }
        }
        assert_eq!(Datum::float(-0.0), Datum::float(0.0));
        assert_eq!(Datum::float(-f64::NAN), Datum::float(f64::NAN));
    }
}
