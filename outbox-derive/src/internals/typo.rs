//! "Did you mean …?"

use super::symbol::Symbol;

/// The known word that `written` is a slip of, if there is one.
pub(crate) fn closest(written: &str, known: &[Symbol]) -> Option<Symbol> {
    let (distance, symbol) =
        known.iter().map(|symbol| (distance(written, symbol.0), *symbol)).min_by_key(|(d, _)| *d)?;
    // One slip in three letters; more is another word.
    (distance <= written.len().max(3) / 3).then_some(symbol)
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replaced = last[j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                let before_last: &Vec<usize> = &before_last;
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = last;
        last = row;
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::closest;
    use crate::internals::symbol::{ID, NAME, ORDERING, VERSION};

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = [NAME, VERSION, ORDERING, ID];
        for (written, meant) in [
            ("nmae", Some(NAME)),
            ("names", Some(NAME)),
            ("verson", Some(VERSION)),
            ("versoin", Some(VERSION)),
            ("odrering", Some(ORDERING)),
            ("order", None),
            ("topic", None),
            ("is", Some(ID)),
            ("fn", None),
        ] {
            assert_eq!(closest(written, &known), meant, "{written}");
        }
        assert_eq!(closest("name", &[]), None);
    }
}
