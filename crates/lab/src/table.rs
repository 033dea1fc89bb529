//! Tables of columns.

use scenario::SweptValues;

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Texts.
    Text(Vec<String>),
    /// Whole numbers.
    Integer(Vec<i64>),
    /// Whole numbers, or nothing.
    Count(Vec<Option<i64>>),
    /// Numbers, or nothing.
    Float(Vec<Option<f64>>),
    /// Yes or no.
    Boolean(Vec<bool>),
}

/// The numbers of a [`Column`] as other languages read them without an object for each, which for a
/// million values would take longer than the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Their type as NumPy names it: `i8` or `f8`.
    pub kind: &'static str,
    /// The values in this machine's byte order; 0 where there is none.
    pub values: Vec<u8>,
    /// If some are missing: a byte for each, 1 if it is there.
    pub there: Option<Vec<u8>>,
}

/// Columns of one length, with their names, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    columns: Vec<(String, Column)>,
}

/// The values of a swept key as a column.
impl From<SweptValues> for Column {
    fn from(values: SweptValues) -> Column {
        match values {
            SweptValues::Boolean(values) => Column::Boolean(values),
            SweptValues::Integer(values) => Column::Integer(values),
            SweptValues::Float(values) => Column::Float(values.into_iter().map(Some).collect()),
            SweptValues::Text(values) => Column::Text(values),
        }
    }
}

impl Column {
    /// How many values it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Column::Text(values) => values.len(),
            Column::Integer(values) => values.len(),
            Column::Count(values) => values.len(),
            Column::Float(values) => values.len(),
            Column::Boolean(values) => values.len(),
        }
    }

    /// The type of its values: `text`, `integer`, `float` or `boolean`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Column::Text(_) => "text",
            Column::Integer(_) | Column::Count(_) => "integer",
            Column::Float(_) => "float",
            Column::Boolean(_) => "boolean",
        }
    }

    /// Its values as bytes; None if they are no numbers.
    #[must_use]
    pub fn numbers(&self) -> Option<Numbers> {
        match self {
            Column::Integer(values) => {
                let values = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
                Some(Numbers { kind: "i8", values, there: None })
            }
            Column::Count(values) => Some(Numbers::some("i8", values, i64::to_ne_bytes)),
            Column::Float(values) => Some(Numbers::some("f8", values, f64::to_ne_bytes)),
            Column::Text(_) | Column::Boolean(_) => None,
        }
    }

    /// Writes a value as CSV has it.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Column::Text(values) => quote(&values[row], out),
            Column::Integer(values) => out.extend_from_slice(values[row].to_string().as_bytes()),
            Column::Count(values) => {
                let text = values[row].map(|value| value.to_string());
                out.extend_from_slice(text.unwrap_or_default().as_bytes());
            }
            Column::Boolean(values) => out.extend_from_slice(values[row].to_string().as_bytes()),
            Column::Float(values) => {
                // The shortest text that is read as the same number.
                let text = values[row].map(|value| format!("{value:?}"));
                out.extend_from_slice(text.unwrap_or_default().as_bytes());
            }
        }
    }

    /// Whether it has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Numbers {
    fn some<T: Copy + Default>(
        kind: &'static str,
        values: &[Option<T>],
        bytes: fn(T) -> [u8; 8],
    ) -> Numbers {
        let missing = values.iter().any(Option::is_none);
        Numbers {
            kind,
            values: values.iter().flat_map(|value| bytes(value.unwrap_or_default())).collect(),
            there: missing.then(|| values.iter().map(|value| u8::from(value.is_some())).collect()),
        }
    }
}

impl Table {
    /// The columns with their names.
    #[must_use]
    pub fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(column, _)| column == name).map(|(_, column)| column)
    }

    /// The columns with their names, to keep.
    #[must_use]
    pub fn into_columns(self) -> Vec<(String, Column)> {
        self.columns
    }

    /// How many rows it has.
    pub(crate) fn height(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// Adds a column on the right.
    pub(crate) fn push(&mut self, name: impl Into<String>, column: Column) {
        self.columns.push((name.into(), column));
    }
}

/// A text in CSV.
pub(crate) fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}

/// A count as a column has it. No count of a run comes near 2^63.
pub(crate) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bytes_and_those_that_are_missing_are_named() {
        let one = 1_i64.to_ne_bytes();
        let count = Column::Count(vec![Some(1), None]).numbers().unwrap();
        assert_eq!((count.kind, &count.values[..8]), ("i8", &one[..]));
        assert_eq!((count.values.len(), count.there), (16, Some(vec![1, 0])));
        let integer = Column::Integer(vec![1]).numbers().unwrap();
        assert_eq!((integer.values, integer.there), (one.to_vec(), None));
        let float = Column::Float(vec![Some(0.5)]).numbers().unwrap();
        assert_eq!((float.kind, float.values), ("f8", 0.5_f64.to_ne_bytes().to_vec()));
        assert_eq!(float.there, None);
        assert_eq!(Column::Boolean(vec![true]).numbers(), None);
        assert_eq!(Column::Text(vec!["a".to_owned()]).numbers(), None);
    }
}
