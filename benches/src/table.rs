//! Prints the measured rates and ratios as a table.

use crate::shape::header::Endpoint;
use crate::statistics::{Sample, ratio};
use crate::variant::Variant;

const COLUMNS: [&str; 11] = [
    "req/s",
    "floor/s",
    "ratio",
    "of one",
    "aim",
    "p50 ms",
    "p99 ms",
    "server us",
    "pg us",
    "load us",
    "logins",
];

/// The form of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// Whether to print Markdown instead of aligned columns.
    pub(crate) markdown: bool,
    /// Whether to print columns for the other server.
    pub(crate) peer: bool,
}

impl Table {
    /// Prints the names of the columns.
    pub(crate) fn head(self) {
        let peer: &[&str] = if self.peer {
            &["peer/s", "times", "floor times"]
        } else {
            &[]
        };
        let columns: Vec<_> = COLUMNS
            .iter()
            .chain(peer)
            .map(ToString::to_string)
            .collect();
        println!("{}", self.line("case", &columns));
        if self.markdown {
            println!("| --- |{}", " ---: |".repeat(columns.len()));
        }
    }

    /// Prints a row for each variant.
    pub(crate) fn rows(
        self,
        variants: &[Variant],
        samples: &[Sample],
        [floor, peer]: [Option<f64>; 2],
    ) {
        for (variant, sample) in variants.iter().zip(samples) {
            let mut both = variants.iter().zip(samples);
            let one = both.find(|(other, _)| variant.is_compared_to(other));
            let of_one = one.map(|(_, one)| ratio(sample.rate(), one.rate()));
            let peer = peer.filter(|_| variant.endpoint == Endpoint::GraphQl);
            let floor = floor.filter(|_| variant.endpoint != Endpoint::Pgbench);
            println!("{}", self.row(variant, sample, [floor, of_one, peer]));
        }
    }

    fn row(
        self,
        variant: &Variant,
        sample: &Sample,
        [floor, of_one, peer]: [Option<f64>; 3],
    ) -> String {
        let rate = sample.rate();
        let of_floor = floor.map(|floor| ratio(rate, floor));
        let mut columns = vec![
            format!("{rate:.0}"),
            number(floor, 0),
            number(of_floor, 2),
            number(of_one, 2),
            aim(variant.aim, of_one.or(of_floor)),
        ];
        columns.extend(costs(sample));
        if self.peer {
            let times = |rate: Option<f64>| number(rate.zip(peer).map(|(a, b)| ratio(a, b)), 1);
            columns.extend([number(peer, 0), times(Some(rate)), times(floor)]);
        }
        let mut name = variant.name.clone();
        if sample.sign_ups > 0 {
            name = format!("{name} ({})", sample.sign_ups);
        }
        if sample.failures > 0 {
            name = format!("{name}, {} ERRORS", sample.failures);
        }
        self.line(&name, &columns)
    }

    fn line(self, name: &str, columns: &[String]) -> String {
        if self.markdown {
            return format!("| {name} | {} |", columns.join(" | "));
        }
        let columns: Vec<_> = columns
            .iter()
            .map(|column| format!("{column:>9}"))
            .collect();
        format!("{name:<53} {}", columns.join(" "))
    }
}

/// The columns of latency, CPU and logins.
fn costs(sample: &Sample) -> [String; 6] {
    if sample.is_rate() {
        return std::array::from_fn(|_| number(None, 0));
    }
    [
        format!("{:.2}", sample.percentile(0.50)),
        format!("{:.2}", sample.percentile(0.99)),
        format!("{:.1}", sample.each(sample.server)),
        format!("{:.1}", sample.each(sample.database)),
        format!("{:.1}", sample.each(sample.generator)),
        sample.logins.to_string(),
    ]
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// The aim, marked if it was missed.
fn aim(aim: Option<f64>, reached: Option<f64>) -> String {
    match (aim, reached) {
        (Some(aim), Some(reached)) if reached < aim => format!("< {aim:.2}"),
        (Some(aim), _) => format!(">= {aim:.2}"),
        (None, _) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Table;
    use crate::shape::header::{Callers, Endpoint};
    use crate::statistics::Sample;
    use crate::variant::Variant;

    #[test]
    fn a_row_has_ratios_to_the_floor_to_one_user_and_to_the_peer() {
        let variant = Variant {
            name: "x".to_owned(),
            endpoint: Endpoint::GraphQl,
            callers: Callers::Users,
            users: 9,
            aim: Some(0.75),
        };
        let mut sample = Sample::default();
        sample.add(&[Duration::from_millis(2); 50], Duration::from_secs(1), 3);
        sample.sign_ups = 4;
        let table = Table {
            markdown: true,
            peer: true,
        };
        assert_eq!(
            table.row(&variant, &sample, [Some(100.0), Some(0.7), Some(5.0)]),
            "| x (4), 3 ERRORS | 50 | 100 | 0.50 | 0.70 | < 0.75 | 2.00 | 2.00 | 0.0 | 0.0 | 0.0 | 0 \
             | 5 | 10.0 | 20.0 |"
        );
        let row = table.row(&variant, &sample, [Some(50.0), None, None]);
        assert!(row.contains("| 1.00 | - | >= 0.75 |"), "{row}");
        assert!(row.ends_with("| 0 | - | - | - |"), "{row}");
        let mut sample = Sample::default();
        sample.add_rate(40.0);
        assert_eq!(
            table.row(&variant, &sample, [None, Some(0.8), None]),
            "| x | 40 | - | - | 0.80 | >= 0.75 | - | - | - | - | - | - | - | - | - |"
        );
    }
}
