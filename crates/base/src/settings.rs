//! What the settings of a table's entry are: their names, meaning and kinds of value. They are
//! written beside the struct that holds them ([`settings!`](crate::settings!)); scenario files are
//! checked by them, and the schema is made from them.

mod values;
mod words;

pub use values::{Bytes, Span};
pub use words::names;

use core::fmt;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A setting: a key in a scenario file.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, by lines.
    pub about: &'static [&'static str],
    /// The kind of its value.
    pub kind: Kind,
    /// Whether it has no meaning of its own if it is absent.
    pub needed: bool,
}

/// A kind of value.
#[derive(Clone, Copy)]
pub enum Kind {
    /// True or false.
    Flag,
    /// A whole number.
    Whole {
        /// The smallest.
        least: u64,
    },
    /// A number.
    Number {
        /// The smallest.
        least: f64,
        /// The largest.
        most: f64,
    },
    /// A number above 0.
    Positive,
    /// A number above 0 and at most 1.
    Weight,
    /// A duration with its unit.
    Duration,
    /// A rate with its unit.
    Rate,
    /// A number of bytes, which may have a unit.
    Bytes,
    /// A text.
    Text,
    /// One of these words.
    Words(fn() -> &'static [&'static str]),
    /// The name of one of these entries of the same table, or a table with its settings.
    Another(&'static [&'static str]),
    /// A list.
    List(&'static Kind),
    /// One of several kinds.
    Either(&'static [Kind]),
    /// A table of settings.
    Settings(&'static [Key]),
}

impl Kind {
    /// A number without bounds.
    pub const NUMBER: Kind = Kind::Number { least: f64::NEG_INFINITY, most: f64::INFINITY };

    /// A whole number of at least `least`.
    #[must_use]
    pub const fn at_least(least: u16) -> Kind {
        Kind::Whole { least: least as u64 }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Flag => f.write_str("true or false"),
            Kind::Whole { least } => write!(f, "a whole number, {least} or more"),
            Kind::Number { least, most } => write!(f, "a number, {least} to {most}"),
            Kind::Positive => f.write_str("a number above 0"),
            Kind::Weight => f.write_str("a number above 0 and at most 1"),
            Kind::Duration => f.write_str("a duration"),
            Kind::Rate => f.write_str("a rate"),
            Kind::Bytes => f.write_str("bytes"),
            Kind::Text => f.write_str("a text"),
            Kind::Words(words) => write!(f, "one of {:?}", words()),
            Kind::Another(names) => write!(f, "one of {names:?}"),
            Kind::List(of) => write!(f, "a list of {of:?}"),
            Kind::Either(kinds) => write!(f, "one of {kinds:?}"),
            Kind::Settings(keys) => write!(f, "{keys:?}"),
        }
    }
}

/// A type of values of settings.
pub trait Setting {
    /// The kind of value.
    const KIND: Kind;
    /// Whether its absence is no value.
    const NEEDED: bool = true;
}

macro_rules! kinds {
    ($($Type:ty: $kind:expr;)+) => {
        $(impl Setting for $Type {
            const KIND: Kind = $kind;
        })+
    };
}

kinds! {
    bool: Kind::Flag;
    u16: Kind::at_least(0);
    u32: Kind::at_least(0);
    u64: Kind::at_least(0);
    f64: Kind::NUMBER;
    crate::Duration: Kind::Duration;
    String: Kind::Text;
}

/// Its absence has a meaning of its own.
impl<T: Setting> Setting for Option<T> {
    const KIND: Kind = T::KIND;
    const NEEDED: bool = false;
}

impl<T: Setting> Setting for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);
}

/// A struct of settings.
pub trait Described {
    /// They.
    const KEYS: &'static [Key];
}

/// An entry of a table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it does, by lines.
    pub about: &'static [&'static str],
    /// Its settings.
    pub keys: &'static [Key],
}

/// A table of entries with settings: an enum that serde reads and writes by the entry's name.
pub trait Table: Serialize + DeserializeOwned {
    /// The key that holds the name.
    const TAG: &'static str;
    /// The entries.
    const ENTRIES: &'static [Entry];

    /// The names of the entries.
    #[must_use]
    fn names() -> Vec<&'static str> {
        Self::ENTRIES.iter().map(|entry| entry.name).collect()
    }
}

/// Declares a struct of settings. Those are its public fields, whose comments are what users read;
/// private fields are state. A kind other than the type's follows `as`:
///
/// ```
/// use base::settings::{Described as _, Kind};
///
/// base::settings! {
///     /// Lowers the MSS option.
///     pub struct MssClamp {
///         /// The largest MSS that passes, bytes.
///         pub mss: u16 as Kind::at_least(48),
///     }
/// }
///
/// let [key] = MssClamp::KEYS else { panic!("one setting") };
/// assert_eq!((key.name, key.about), ("mss", &[" The largest MSS that passes, bytes."][..]));
/// assert!(matches!(key.kind, Kind::Whole { least: 48 }));
/// ```
#[macro_export]
macro_rules! settings {
    // A setting.
    (@fields $head:tt $Name:ident [$($fields:tt)*] [$($keys:tt)*]
        $(#[$($attr:tt)*])* pub $key:ident: $Type:ty $(as $kind:expr)?, $($rest:tt)*
    ) => {
        $crate::settings! { @fields $head $Name
            [$($fields)* $(#[$($attr)*])* pub $key: $Type,]
            [$($keys)* $crate::settings::Key {
                name: stringify!($key),
                about: &[$($crate::settings!(@line $($attr)*)),*],
                kind: $crate::settings!(@kind $Type $(, $kind)?),
                needed: <$Type as $crate::settings::Setting>::NEEDED,
            },]
            $($rest)*
        }
    };
    // State.
    (@fields $head:tt $Name:ident [$($fields:tt)*] $keys:tt
        $(#[$($attr:tt)*])* $key:ident: $Type:ty, $($rest:tt)*
    ) => {
        $crate::settings! { @fields $head $Name
            [$($fields)* $(#[$($attr)*])* $key: $Type,] $keys $($rest)*
        }
    };
    (@fields [$($head:tt)*] $Name:ident [$($fields:tt)*] [$($keys:tt)*]) => {
        $($head)* struct $Name { $($fields)* }

        impl $crate::settings::Described for $Name {
            const KEYS: &'static [$crate::settings::Key] = &[$($keys)*];
        }

        impl $crate::settings::Setting for $Name {
            const KIND: $crate::settings::Kind = $crate::settings::Kind::Settings(
                <$Name as $crate::settings::Described>::KEYS,
            );
        }
    };
    (@line doc = $line:literal) => { $line };
    (@line $($other:tt)*) => { "" };
    (@kind $Type:ty) => { <$Type as $crate::settings::Setting>::KIND };
    (@kind $Type:ty, $kind:expr) => { $kind };
    // An entry of a table, with its comment.
    (@entry $name:literal $Settings:ident $(#[$($attr:tt)*])*) => {
        $crate::settings::Entry {
            name: $name,
            about: &[$($crate::settings!(@line $($attr)*)),*],
            keys: <$Settings as $crate::settings::Described>::KEYS,
        }
    };
    ($(#[$($attr:tt)*])* pub struct $Name:ident;) => {
        $(#[$($attr)*])* pub struct $Name;

        impl $crate::settings::Described for $Name {
            const KEYS: &'static [$crate::settings::Key] = &[];
        }
    };
    ($(#[$($attr:tt)*])* pub struct $Name:ident { $($fields:tt)* }) => {
        $crate::settings! { @fields [$(#[$($attr)*])* pub] $Name [] [] $($fields)* }
    };
}

/// Makes enums that serde reads by the names of their variants values of settings.
#[macro_export]
macro_rules! words {
    ($($Enum:ty),+) => {
        $(impl $crate::settings::Setting for $Enum {
            const KIND: $crate::settings::Kind =
                $crate::settings::Kind::Words($crate::settings::names::<$Enum>);
        })+
    };
}
