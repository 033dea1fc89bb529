//! The known name that is nearest to a misspelt one.

/// `one of a, b, c`, each in backquotes.
pub(crate) fn one_of(names: &[&str]) -> String {
    match names {
        [one] => format!("`{one}`"),
        [one, other] => format!("`{one}` or `{other}`"),
        _ => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("one of {}", names.join(", "))
        }
    }
}

/// A suggestion, if one of `names` is near to the written one.
pub(crate) fn did_you_mean(written: &str, names: &[&str]) -> Option<String> {
    nearest(written, names).map(|name| format!("did you mean `{name}`?"))
}

/// The nearest of `names`, if the written one may be a misspelling of it.
pub(crate) fn nearest<'a>(written: &str, names: &[&'a str]) -> Option<&'a str> {
    let near = names.iter().map(|name| (distance(written, name), *name)).min()?;
    let limit = (written.chars().count() / 3).max(1);
    (near.0 <= limit).then_some(near.1)
}

/// The edit distance of two texts: letters inserted, deleted, replaced, or swapped with their
/// neighbour.
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
        assert_eq!(nearest("mms", &["mss", "rto"]), Some("mss"));
        assert_eq!(nearest("sequence", &["mss", "rto"]), None);
        assert_eq!(nearest("mss", &[]), None);
    }
}
