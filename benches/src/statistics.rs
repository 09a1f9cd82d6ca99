//! Rates, percentiles and ratios of the values measured in slices.

use std::time::Duration;

/// Latencies and CPU times of all slices of one variant.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    latencies: Vec<Duration>,
    elapsed: Duration,
    /// The rates of the slices in which pgbench sent the requests. Only the rate of such a slice is
    /// measured.
    rates: Vec<f64>,
    /// The number of requests that had an error response.
    pub(crate) failures: usize,
    /// The seconds of CPU of the service.
    pub(crate) server: f64,
    /// The seconds of CPU of PostgreSQL.
    pub(crate) database: f64,
    /// The seconds of CPU of the load generator.
    pub(crate) generator: f64,
    /// The number of people who signed up during the slices.
    pub(crate) sign_ups: u32,
    /// The number of sessions that PostgreSQL started.
    pub(crate) logins: u64,
}

impl Sample {
    /// Adds the result of one slice.
    pub(crate) fn add(&mut self, latencies: &[Duration], elapsed: Duration, failures: usize) {
        self.latencies.extend_from_slice(latencies);
        self.elapsed += elapsed;
        self.failures += failures;
    }

    /// Adds a slice in which pgbench sent the requests.
    pub(crate) fn add_rate(&mut self, rate: f64) {
        self.rates.push(rate);
    }

    /// Whether pgbench sent the requests, so that only their rate is known.
    pub(crate) fn is_rate(&self) -> bool {
        !self.rates.is_empty()
    }

    /// Sorts the latencies. Must be called after the last slice.
    pub(crate) fn sort(&mut self) {
        self.latencies.sort_unstable();
    }

    /// Requests per second.
    pub(crate) fn rate(&self) -> f64 {
        if let Some(rate) = mean(&self.rates) {
            return rate;
        }
        ratio(self.latencies.len() as f64, self.elapsed.as_secs_f64())
    }

    /// A percentile of the latency in milliseconds. `share` is between 0 and 1.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        percentile(&self.latencies, share)
    }

    /// Microseconds per request, if all requests together took `seconds`.
    pub(crate) fn each(&self, seconds: f64) -> f64 {
        ratio(seconds * 1e6, self.latencies.len() as f64)
    }
}

/// A percentile (nearest rank) of sorted times, in milliseconds. `share` is between 0 and 1.
pub(crate) fn percentile(sorted: &[Duration], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let time = sorted.get((last as f64 * share).round() as usize);
    time.map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

/// The mean of some rates; `None` if there are none.
pub(crate) fn mean(rates: &[f64]) -> Option<f64> {
    let sum: f64 = rates.iter().sum();
    (!rates.is_empty()).then(|| sum / rates.len() as f64)
}

/// The median of some numbers; not a number if there are none.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A quotient, or 0 if the divisor is 0.
pub(crate) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Sample, percentile, ratio};

    fn milliseconds(times: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        times.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let times = milliseconds(1..=101);
        assert!((percentile(&times, 0.5) - 51.0).abs() < 1e-9);
        assert!((percentile(&times, 0.99) - 100.0).abs() < 1e-9);
        assert!((percentile(&times, 1.0) - 101.0).abs() < 1e-9);
        assert!(percentile(&[], 0.5).abs() < 1e-9);
    }

    #[test]
    fn slices_add_up() {
        let mut sample = Sample::default();
        sample.add(&milliseconds([9, 1]), Duration::from_secs(1), 1);
        sample.add(&milliseconds([5, 3]), Duration::from_secs(1), 0);
        sample.sort();
        assert!((sample.rate() - 2.0).abs() < 1e-9);
        assert!((sample.percentile(1.0) - 9.0).abs() < 1e-9);
        assert!((sample.each(0.002) - 500.0).abs() < 1e-9);
        assert_eq!(sample.failures, 1);
    }

    #[test]
    fn slices_of_pgbench_have_only_a_rate() {
        let mut sample = Sample::default();
        sample.add_rate(3.0);
        sample.add_rate(5.0);
        assert!((sample.rate() - 4.0).abs() < 1e-9);
        assert!(sample.is_rate());
    }

    #[test]
    fn a_ratio_to_nothing_is_zero() {
        assert!(ratio(5.0, 0.0).abs() < 1e-9);
    }
}
