//! The tables: medians of the rounds.

use crate::{server::Measured, subject::Subject};

/// What a scenario measures: heading, name, and digits behind the point.
type Column = (&'static str, &'static str, usize);

const COST: [Column; 3] = [
    ("WAL bytes an event (whole server)", "wal", 0),
    ("transactions an event", "transactions", 2),
    ("statements an event", "statements", 2),
];

fn columns(scenario: &str) -> &'static [Column] {
    match scenario {
        "s3" | "s8" => &[("p50 ms", "p50", 1), ("p99 ms", "p99", 1)],
        "s4" => &[
            ("seconds from the kill until settled", "settled", 2),
            ("handled twice", "twice", 0),
            ("lost", "lost", 0),
        ],
        "s5" => &[("p50 ms", "p50", 1), ("p99 ms", "p99", 1), ("dead letters", "dead", 0)],
        "s6" => &[("a second", "rate", 0), ("inversions", "inversions", 0)],
        _ => &[("a second", "rate", 0), ("of raw", "part", 2)],
    }
}

/// A round on a line.
pub(crate) fn line(measured: &Measured) -> String {
    let texts: Vec<_> = measured.iter().map(|(name, value)| format!("{name} {value:.2}")).collect();
    texts.join("  ")
}

/// Prints medians, and the spread of the first of them; rates as a part of the best that the raw statements reached.
pub(crate) fn print(scenario: &str, subjects: &[Subject], results: &[Result<Vec<Measured>, String>]) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let columns: Vec<_> = columns(scenario).iter().chain(&COST).copied().collect();
    let (title, first, digits) = columns[0];
    println!("\n{scenario}, load {}\n", load.trim());
    let headings: Vec<_> = columns.iter().map(|(heading, ..)| *heading).collect();
    println!("| subject | {} | spread of {title} |", headings.join(" | "));
    println!("| ---{} |", " | ---:".repeat(columns.len() + 1));
    let raw = |(subject, result): (&Subject, &Result<Vec<Measured>, String>)| {
        let rounds = result.as_ref().ok().filter(|_| subject.name.starts_with("raw"))?;
        Some(spread(rounds, "rate")?[1])
    };
    let ceiling = subjects.iter().zip(results).filter_map(raw).fold(f64::NAN, f64::max);
    for (subject, result) in subjects.iter().zip(results) {
        let rounds = match result {
            Ok(rounds) if !rounds.is_empty() => rounds,
            Ok(_) => {
                println!("| {} | not measured{} |", subject.name, " |".repeat(columns.len()));
                continue;
            }
            Err(why) => {
                println!("| {} | {why}{} |", subject.name, " |".repeat(columns.len()));
                continue;
            }
        };
        let cell = |&(_, name, digits): &Column| {
            let value = match name {
                "part" => spread(rounds, "rate").map(|[_, median, _]| median / ceiling),
                _ => spread(rounds, name).map(|[_, median, _]| median),
            };
            value
                .filter(|value| value.is_finite())
                .map_or("-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let cells: Vec<_> = columns.iter().map(cell).collect();
        let [least, _, most] = spread(rounds, first).unwrap_or([f64::NAN; 3]);
        println!("| {} | {} | {least:.digits$}–{most:.digits$} |", subject.name, cells.join(" | "));
    }
    println!();
}

/// The least, the median and the most.
fn spread(rounds: &[Measured], name: &str) -> Option<[f64; 3]> {
    let mut all: Vec<_> = rounds.iter().filter_map(|one| one.get(name).copied()).collect();
    all.sort_by(f64::total_cmp);
    Some([*all.first()?, all[all.len() / 2], *all.last()?])
}
