//! The random values of a shape's parameters, for requests to the service and for pgbench.

use crate::Result;

/// The source of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// `random(LOW, HIGH)`: an integer from `LOW` to `HIGH`, inclusive.
    Random(u32, u32),
    /// `own(COUNT)`: the key of a row that belongs to the caller. Each user has `COUNT` rows with
    /// consecutive keys; the keys of user 0 start at 1.
    Own(u32),
}

impl Value {
    /// Parses `random(1, 100)` or `own(20)`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let wrong = || format!("`{text}`: expected `random(LOW, HIGH)` or `own(COUNT)`");
        let (function, rest) = text.trim().split_once('(').ok_or_else(wrong)?;
        let arguments = rest.strip_suffix(')').ok_or_else(wrong)?;
        let arguments: Result<Vec<u32>, _> = arguments
            .split(',')
            .map(|argument| argument.trim().parse())
            .collect();
        match (function.trim(), &*arguments.map_err(|_| wrong())?) {
            ("random", &[low, high]) if low <= high => Ok(Self::Random(low, high)),
            ("own", &[count]) if count > 0 => Ok(Self::Own(count)),
            _ => Err(wrong().into()),
        }
    }

    /// Draws a random value for a request of the user with this number.
    pub(crate) fn draw(self, random: &mut Random, user: u32) -> u32 {
        match self {
            Self::Random(low, high) => low + random.below(high - low + 1),
            Self::Own(count) => user * count + 1 + random.below(count),
        }
    }

    /// The expression with which pgbench draws the value. pgbench runs as user 0.
    pub(crate) fn pgbench(self) -> String {
        match self {
            Self::Random(low, high) => format!("random({low}, {high})"),
            Self::Own(count) => format!("random(1, {count})"),
        }
    }

    /// The expression of [`Self::pgbench`] if each client of pgbench runs as the user with the
    /// client's number.
    pub(crate) fn pgbench_of_client(self) -> String {
        match self {
            Self::Random(..) => self.pgbench(),
            Self::Own(count) => {
                format!("random(:client_id * {count} + 1, :client_id * {count} + {count})")
            }
        }
    }
}

/// Marsaglia's xorshift64, which is fast and random enough to choose keys.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A generator whose numbers depend only on the seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Draws a number from 0 to `bound - 1`.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u64::from((self.0 >> 32) as u32) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::{Random, Value};

    #[test]
    fn a_value_is_read() -> crate::Result<()> {
        assert_eq!(Value::parse(" random(1, 100)")?, Value::Random(1, 100));
        assert_eq!(Value::parse("own(20)")?, Value::Own(20));
        for wrong in [
            "random(1)",
            "random(2, 1)",
            "own(0)",
            "own(x)",
            "7",
            "own(1",
            "any(1)",
        ] {
            let error = Value::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("expected `random(LOW, HIGH)`"), "{error}");
        }
        Ok(())
    }

    #[test]
    fn drawn_values_lie_within_their_bounds_and_reach_them() {
        let mut random = Random::new(7);
        let drawn: Vec<u32> = (0..1000)
            .map(|_| Value::Random(3, 5).draw(&mut random, 9))
            .collect();
        assert_eq!(drawn.iter().min(), Some(&3));
        assert_eq!(drawn.iter().max(), Some(&5));
        let drawn: Vec<u32> = (0..1000)
            .map(|_| Value::Own(20).draw(&mut random, 2))
            .collect();
        assert_eq!(drawn.iter().min(), Some(&41));
        assert_eq!(drawn.iter().max(), Some(&60));
    }
}
