//! The words of serde, for people who write scenarios.

use crate::error::Problem;

/// What serde calls things, and what they are called in TOML.
const WORDS: &[(&str, &str)] = &[
    ("unknown field ", "unknown key "),
    ("there are no fields", "there are no keys here"),
    ("missing field ", "missing key "),
    ("unknown variant ", "unknown name "),
    ("invalid type: ", "found "),
    ("invalid value: ", "found "),
    ("found map", "found a table"),
    ("found sequence", "found a list"),
    ("expected a sequence", "expected a list"),
    ("expected a map", "expected a table"),
    ("expected a boolean", "expected true or false"),
    ("expected f64", "expected a number"),
    ("expected u32", "expected a whole number, 0 or more"),
    ("wanted string or table", "expected a name in quotes"),
];

/// The problem in the words of TOML, with the name that was probably meant.
pub(crate) fn reword(problem: Problem) -> Problem {
    let Problem { span, mut message, help } = problem;
    let help = help.or_else(|| meant(&message).map(|name| format!("did you mean `{name}`?")));
    for (serde, toml) in WORDS {
        message = message.replacen(serde, toml, 1);
    }
    if let Some(at) = message.find("expected struct ") {
        message.truncate(at);
        message.push_str("expected a table");
    }
    Problem { span, message, help }
}

/// Of the names that a message about an unknown one lists, the nearest to it.
fn meant(message: &str) -> Option<&str> {
    if !message.starts_with("unknown ") {
        return None;
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    let near = names.map(|name| (distance(unknown, name), name)).min()?;
    let limit = (unknown.chars().count() / 3).max(1);
    (near.0 <= limit).then_some(near.1)
}

/// Letters to insert, delete, replace, or swap with their neighbour to make one text of the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut least =
                (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_one_letter_or_two_swapped() {
        assert_eq!(distance("mss", "mss"), 0);
        assert_eq!(distance("mms", "mss"), 1);
        assert_eq!(distance("recovrey", "recovery"), 1);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn the_nearest_name_is_offered_unless_it_is_far() {
        let list = "expected one of `mss`, `rto`";
        assert_eq!(meant(&format!("unknown field `mms`, {list}")), Some("mss"));
        assert_eq!(meant(&format!("unknown field `sequence`, {list}")), None);
        assert_eq!(meant("missing field `mss`"), None);
    }

    #[test]
    fn the_words_are_those_of_toml() {
        let reworded = |text: &str| {
            let message = text.to_owned();
            reword(Problem { span: None, message, help: None }).message
        };
        assert_eq!(reworded("missing field `to`"), "missing key `to`");
        assert_eq!(
            reworded("invalid type: map, expected a sequence"),
            "found a table, expected a list"
        );
        assert_eq!(
            reworded("invalid type: integer `5`, expected struct Tcp"),
            "found integer `5`, expected a table"
        );
    }
}
