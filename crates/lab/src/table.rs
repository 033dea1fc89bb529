//! Columns: what leaves this crate.

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Texts.
    Text(Vec<String>),
    /// Whole numbers.
    Integer(Vec<i64>),
    /// Numbers, or nothing.
    Float(Vec<Option<f64>>),
    /// Yes or no.
    Boolean(Vec<bool>),
}

/// Columns of one length, with their names, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    columns: Vec<(String, Column)>,
}

impl Column {
    /// How many values it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Column::Text(values) => values.len(),
            Column::Integer(values) => values.len(),
            Column::Float(values) => values.len(),
            Column::Boolean(values) => values.len(),
        }
    }

    /// Whether it has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

    /// Adds a column on the right.
    pub(crate) fn push(&mut self, name: impl Into<String>, column: Column) {
        self.columns.push((name.into(), column));
    }
}
