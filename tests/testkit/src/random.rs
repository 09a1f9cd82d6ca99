//! Random numbers that are the same in every run.

/// The difference of two successive states.
pub(crate) const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The number that a generator returns in a state.
pub(crate) fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// A generator of pseudo-random numbers (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
/// Generators", 2014: `SplitMix64`).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose numbers depend only on the seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below a limit.
    ///
    /// # Panics
    /// If the limit is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    /// Picks one of the values.
    ///
    /// # Panics
    ///
    /// If there are no values.
    pub fn pick<'v, T>(&mut self, values: &'v [T]) -> &'v T {
        &values[self.below(values.len())]
    }

    /// Returns true once in `n` times.
    ///
    /// # Panics
    ///
    /// If `n` is 0.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}
