//! The table that is printed.

use crate::shape::header::Door;
use crate::statistics::{Sample, ratio};
use crate::variant::Variant;

const COLUMNS: [&str; 10] = [
    "req/s",
    "floor/s",
    "ratio",
    "of one",
    "p50 ms",
    "p99 ms",
    "server us",
    "pg us",
    "load us",
    "logins",
];

/// The names of the columns.
pub(crate) fn header(peer: bool) -> String {
    let peer: &[&str] = if peer { &["peer/s", "times"] } else { &[] };
    let columns = COLUMNS.iter().chain(peer);
    line("case", columns.map(|name| (*name).to_owned()))
}

/// Prints a row for each variant.
pub(crate) fn print(
    variants: &[Variant],
    samples: &[Sample],
    floor: Option<f64>,
    peer: Option<f64>,
) {
    for (variant, sample) in variants.iter().zip(samples) {
        let mut both = variants.iter().zip(samples);
        let one = both.find(|(other, _)| variant.is_compared_to(other));
        let of_one = one.map(|(_, one)| ratio(sample.rate(), one.rate()));
        let peer = peer.filter(|_| variant.door == Door::GraphQl);
        println!("{}", row(&variant.name, sample, [floor, of_one, peer]));
    }
}

fn row(name: &str, sample: &Sample, [floor, of_one, peer]: [Option<f64>; 3]) -> String {
    let rate = sample.rate();
    let mut columns = vec![
        format!("{rate:.0}"),
        number(floor, 0),
        number(floor.map(|floor| ratio(rate, floor)), 2),
        number(of_one, 2),
        format!("{:.2}", sample.percentile(0.50)),
        format!("{:.2}", sample.percentile(0.99)),
        format!("{:.1}", sample.each(sample.server)),
        format!("{:.1}", sample.each(sample.database)),
        format!("{:.1}", sample.each(sample.generator)),
        sample.logins.to_string(),
    ];
    if peer.is_some() {
        columns.push(number(peer, 0));
        columns.push(number(peer.map(|peer| ratio(rate, peer)), 1));
    }
    if sample.sign_ups > 0 {
        columns.push(format!("{} sign-ups", sample.sign_ups));
    }
    if sample.failures > 0 {
        columns.push(format!("{} errors", sample.failures));
    }
    line(name, columns.into_iter())
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn line(name: &str, columns: impl Iterator<Item = String>) -> String {
    let columns: Vec<_> = columns.map(|column| format!("{column:>9}")).collect();
    format!("{name:<50} {}", columns.join(" "))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::row;
    use crate::statistics::Sample;

    #[test]
    fn a_row_has_ratios_to_the_floor_to_one_user_and_to_the_peer() {
        let mut sample = Sample::default();
        sample.add(&[Duration::from_millis(2); 50], Duration::from_secs(1), 3);
        sample.sign_ups = 4;
        let row = row("a case", &sample, [Some(100.0), Some(0.7), Some(5.0)]);
        let columns: Vec<_> = row.split_whitespace().skip(2).collect();
        assert_eq!(
            columns,
            [
                "50", "100", "0.50", "0.70", "2.00", "2.00", "0.0", "0.0", "0.0", "0", "5", "10.0",
                "4", "sign-ups", "3", "errors"
            ]
        );
    }
}
