//! The path of a value in a scenario: `links.0.errors.bit`, or `links.*.rate` for all links.

use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// A dotted path. A step that contains a dot is written in double quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(Vec<Step>);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A key of a table, or the index of an array, counted from 0.
    Name(String),
    /// Everything in a table or an array: `*`.
    Every,
}

/// A text that is not a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "not a path: expected keys and indexes (from 0, or *) with dots between them, such as links.0.errors.bit"
)]
pub(crate) struct PathError;

impl Path {
    /// The steps, from the outermost.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The path of its first `count` steps.
    pub(crate) fn first(&self, count: usize) -> Path {
        Path(self.0.iter().take(count).cloned().collect())
    }

    /// Whether a value at this path replaces the one at `other`.
    pub(crate) fn covers(&self, other: &Path) -> bool {
        self.0.len() <= other.0.len()
            && self.0.iter().zip(&other.0).all(|(mine, its)| *mine == Step::Every || mine == its)
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Path, PathError> {
        let mut steps = Vec::new();
        let mut rest = text.trim();
        loop {
            let (step, after) = match rest.strip_prefix('"') {
                Some(quoted) => {
                    let (name, after) = quoted.split_once('"').ok_or(PathError)?;
                    (Step::Name(name.to_owned()), after)
                }
                None => {
                    let (name, after) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
                    match name {
                        "" => return Err(PathError),
                        "*" => (Step::Every, after),
                        _ if name.contains(char::is_whitespace) => return Err(PathError),
                        _ => (Step::Name(name.to_owned()), after),
                    }
                }
            };
            steps.push(step);
            if after.is_empty() {
                return Ok(Path(steps));
            }
            rest = after.strip_prefix('.').ok_or(PathError)?;
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            match step {
                Step::Every => f.write_str("*")?,
                Step::Name(name) => f.write_str(&written(name))?,
            }
        }
        Ok(())
    }
}

/// A key as written in a path.
pub(crate) fn written(name: &str) -> String {
    let plain = |c: char| !matches!(c, '.' | '"') && !c.is_whitespace();
    if name.is_empty() || !name.chars().all(plain) {
        format!("\"{name}\"")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        text.parse().unwrap()
    }

    #[test]
    fn keys_indexes_and_stars_are_read_and_written() {
        for text in ["title", "links.0.errors.bit", "links.*.rate", "nodes.\"a.b\".x"] {
            assert_eq!(path(text).to_string(), text);
        }
    }

    #[test]
    fn gaps_and_loose_quotes_are_no_path() {
        for text in ["", ".", "a.", ".a", "a..b", "\"a", "\"a\"b", "a b"] {
            assert_eq!(text.parse::<Path>(), Err(PathError), "{text:?}");
        }
    }

    #[test]
    fn a_path_covers_itself_what_is_below_it_and_what_its_stars_stand_for() {
        assert!(path("a.b").covers(&path("a.b")));
        assert!(path("a").covers(&path("a.b")));
        assert!(path("links.*.rate").covers(&path("links.0.rate")));
        assert!(!path("links.0.rate").covers(&path("links.*.rate")));
        assert!(!path("a.b").covers(&path("a")));
    }
}
