//! The receiver's buffer.

use super::profile::{Defaults, ReceiveBuffer, Window};
use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::Amount;
use crate::reading::shape::{Shape, table};
use serde_json::{Value, json};
use tcp::ReceiveWindow;
use toml::Spanned;

/// The largest window that a scaled window field can say (RFC 7323 §2.3).
const LARGEST: u64 = 65_535 << 14;

/// As written.
#[derive(Debug)]
pub(crate) enum Written {
    /// Of one size.
    Fixed(Amount),
    /// Tuned to the path.
    Auto(Table),
}

table! {
    /// A buffer that is tuned to the path: it grows to a multiple of what the application reads in a
    /// round trip.
    pub(crate) struct Table {
        /// The size at first; 64 KiB less 1 byte if absent.
        initial: Spanned<Amount>;
        /// The largest size; 16 MiB if absent.
        maximum: Spanned<Amount>;
    }
}

impl Shape for Written {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Written> {
        if node.get_ref().is_table() {
            return Table::read(node, problems).map(Written::Auto);
        }
        match node.get_ref().as_str() {
            Some("auto") => Some(Written::Auto(Table::default())),
            _ => Amount::read(node, problems).map(Written::Fixed),
        }
    }

    fn schema() -> Value {
        let mut schema = Amount::schema();
        if let Some(forms) = schema["anyOf"].as_array_mut() {
            forms.push(json!({ "const": "auto" }));
            forms.push(Table::schema());
        }
        schema
    }
}

/// The buffer, checked.
pub(crate) fn resolve(
    written: Option<Spanned<Written>>,
    mss: u16,
    defaults: &Defaults,
) -> Result<ReceiveWindow, Problem> {
    let Some(written) = written else {
        return match defaults.receive_window {
            ReceiveBuffer::Fixed(window) => fixed(Some(window), mss)
                .ok_or_else(|| Problem { message: expected(mss), ..Problem::default() }),
            ReceiveBuffer::Auto(window) => Ok(window),
        };
    };
    let problem = |span| Problem::at(span, expected(mss));
    match written.get_ref() {
        Written::Fixed(amount) => {
            fixed(Window::of(amount.0), mss).ok_or_else(|| problem(written.span()))
        }
        Written::Auto(table) => {
            let size = |amount: &Option<Spanned<Amount>>, default: u32| match amount {
                None => Ok(default),
                Some(amount) => fixed(Window::of(amount.get_ref().0), mss)
                    .map(|window| window.maximum)
                    .ok_or_else(|| problem(amount.span())),
            };
            let default = ReceiveWindow::default();
            let maximum = size(&table.maximum, default.maximum)?;
            let initial = size(&table.initial, default.initial.min(maximum))?;
            match &table.initial {
                Some(written) if initial > maximum => Err(Problem::at(
                    written.span(),
                    format!("expected at most `maximum` ({maximum} bytes)"),
                )),
                _ => Ok(ReceiveWindow { initial, maximum }),
            }
        }
    }
}

/// A buffer of one size; `None` if it is too small or too large.
fn fixed(window: Option<Window>, mss: u16) -> Option<ReceiveWindow> {
    let bytes = window?.bytes(mss);
    (u64::from(mss)..=LARGEST).contains(&bytes).then_some(ReceiveWindow::fixed(bytes as u32))
}

fn expected(mss: u16) -> String {
    format!(
        "expected at least one segment ({mss} bytes) and at most {LARGEST} bytes, such as \"20 \
         segments\" or \"64 KiB\""
    )
}
