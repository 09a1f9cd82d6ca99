//! The table that compares the rounds of three nodes with the rounds of one node.

use super::{DATABASES, Round, Rounds};
use crate::model::load::Usage;
use crate::statistics::{median, ratio};

/// A value of a round.
type Measure = fn(&Round) -> f64;

/// The aim of a row: the numbers with which the medians are compared.
#[derive(Clone, Copy)]
enum Aim {
    /// The row has no aim.
    None,
    /// The median of three nodes is this number.
    Equals(f64),
    /// The median of three nodes is at most this many times the median of one node.
    Times(f64),
    /// The median of three nodes is below the first number, and exceeds the median of one node by
    /// at most the second number.
    Below(f64, f64),
}

/// The name of a row that repeats the row before it, but subtracts the CPU time of an equally long
/// period without writes.
const LESS_IDLE: &str = "the same, less idle";

const ROWS: [(&str, Measure, Aim); 13] = [
    (
        "walsenders",
        |round| round.usage.walsender_count,
        Aim::Equals(DATABASES as f64),
    ),
    (
        "slots",
        |round| round.usage.slot_count,
        Aim::Equals(DATABASES as f64),
    ),
    ("changes/s", |round| round.usage.rate(), Aim::None),
    (
        "CPU of all walsenders a transaction, us",
        |round| round.usage.each(round.usage.walsenders),
        Aim::Times(1.15),
    ),
    (
        LESS_IDLE,
        |round| round.each(|usage| usage.walsenders),
        Aim::None,
    ),
    (
        "CPU of the rest of PostgreSQL a transaction, us",
        |round| round.usage.each(round.usage.postgres),
        Aim::None,
    ),
    (
        LESS_IDLE,
        |round| round.each(|usage| usage.postgres),
        Aim::None,
    ),
    (
        "CPU of all nodes a transaction, us",
        |round| round.usage.each(round.usage.nodes),
        Aim::None,
    ),
    (
        LESS_IDLE,
        |round| round.each(|usage| usage.nodes),
        Aim::None,
    ),
    (
        "CPU of all NATS servers a transaction, us",
        |round| round.usage.each(round.usage.nats),
        Aim::None,
    ),
    (LESS_IDLE, |round| round.each(|usage| usage.nats), Aim::None),
    ("p50, ms", |round| round.p50, Aim::Below(5.0, 2.0)),
    ("p99, ms", |round| round.p99, Aim::Below(50.0, 2.0)),
];

impl Round {
    /// Microseconds of CPU for each transaction. The CPU time of an equally long period without
    /// writes is subtracted.
    fn each(&self, cpu: fn(&Usage) -> f64) -> f64 {
        let idle = cpu(&self.idle) / self.idle.seconds * self.usage.seconds;
        self.usage.each(cpu(&self.usage) - idle)
    }
}

/// Prints the medians of each kind of rounds as a table in Markdown. The aims compare three nodes
/// with one node that has the sockets of one.
pub(super) fn print(rounds: &Rounds) {
    println!(
        "| | one node without a bus | the same with 3,000 sockets, three events a change \
         | three nodes with a bus | aim |"
    );
    println!("| --- | ---: | ---: | ---: | --- |");
    for (name, measure, aim) in ROWS {
        let of = |rounds: &[Round]| median(rounds.iter().map(measure).collect());
        let (alone, all, shared) = (of(&rounds.alone), of(&rounds.all), of(&rounds.shared));
        let aim = aim.text(alone, shared);
        let values = [alone, all, shared].map(short).join(" | ");
        println!("| {name} | {values} | {aim} |");
    }
}

impl Aim {
    /// The text of the aim, and whether the medians meet it.
    fn text(self, alone: f64, shared: f64) -> String {
        let (text, is_met) = match self {
            Self::None => return String::new(),
            Self::Equals(number) => (format!("{number}"), (shared - number).abs() < f64::EPSILON),
            Self::Times(most) => {
                let times = ratio(shared, alone);
                (format!("{times:.2} times, at most {most}"), times <= most)
            }
            Self::Below(limit, more) => {
                let added = shared - alone;
                (
                    format!("below {limit}; {added:+.2}, at most +{more}"),
                    shared < limit && added <= more,
                )
            }
        };
        let met = if is_met { "met" } else { "missed" };
        format!("{met}: {text}")
    }
}

/// A number without needless digits.
fn short(number: f64) -> String {
    if number.fract() == 0.0 || number >= 100.0 {
        format!("{number:.0}")
    } else {
        format!("{number:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::Aim;

    #[test]
    fn an_aim_is_met_or_missed() {
        for (aim, alone, shared, text) in [
            (Aim::Equals(3.0), 3.0, 3.0, "met: 3"),
            (Aim::Equals(3.0), 3.0, 4.0, "missed: 3"),
            (
                Aim::Times(1.15),
                40.0,
                44.0,
                "met: 1.10 times, at most 1.15",
            ),
            (
                Aim::Times(1.15),
                40.0,
                48.0,
                "missed: 1.20 times, at most 1.15",
            ),
            (
                Aim::Below(5.0, 2.0),
                1.0,
                2.5,
                "met: below 5; +1.50, at most +2",
            ),
            (
                Aim::Below(5.0, 2.0),
                1.0,
                3.5,
                "missed: below 5; +2.50, at most +2",
            ),
            (
                Aim::Below(5.0, 2.0),
                4.5,
                5.5,
                "missed: below 5; +1.00, at most +2",
            ),
            (Aim::None, 1.0, 2.0, ""),
        ] {
            assert_eq!(aim.text(alone, shared), text);
        }
    }
}
