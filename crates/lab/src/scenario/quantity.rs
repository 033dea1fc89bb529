//! Values as people write them in scenario files.

use base::units::{Size, UnitError};
use base::{Duration, Rate};
use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use tcp::InitialWindow;

/// A value written with its unit, in quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<T>(pub(super) T);

/// What can be written with a unit.
pub(super) trait Quantity: FromStr<Err = UnitError> {
    /// What was expected when something else was found.
    const EXPECTED: &'static str;
}

impl Quantity for Duration {
    const EXPECTED: &'static str = "a duration in quotes, such as \"320 ms\"";
}

impl Quantity for Rate {
    const EXPECTED: &'static str = "a rate in quotes, such as \"1.5 Mbit/s\"";
}

impl Quantity for Size {
    const EXPECTED: &'static str = "a size in quotes, such as \"64 KiB\" or \"50 packets\"";
}

impl<'de, T: Quantity> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Written<T>, D::Error> {
        struct Text<T>(PhantomData<T>);
        impl<T: Quantity> Visitor<'_> for Text<T> {
            type Value = Written<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTED)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Written<T>, E> {
                text.parse().map(Written).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Text(PhantomData))
    }
}

/// A size that may be a plain number of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount(pub(super) Size);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Amount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes, or a size in quotes, such as \"64 KiB\" or \"20 segments\"")
            }
            fn visit_i64<E: Error>(self, bytes: i64) -> Result<Amount, E> {
                match u64::try_from(bytes) {
                    Ok(bytes) => Ok(Amount(Size::Bytes(bytes))),
                    Err(_) => Err(E::custom("expected a number of bytes, not a negative number")),
                }
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
                text.parse().map(Amount).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// By how many segments an acknowledgment may let the window grow, if octets are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteCounting(pub(super) Option<u32>);

impl<'de> Deserialize<'de> for ByteCounting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ByteCounting, D::Error> {
        struct Limit;
        impl Visitor<'_> for Limit {
            type Value = ByteCounting;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"off\" or a number of segments, at least 1")
            }
            fn visit_i64<E: Error>(self, segments: i64) -> Result<ByteCounting, E> {
                match u32::try_from(segments) {
                    Ok(limit @ 1..) => Ok(ByteCounting(Some(limit))),
                    _ => Err(E::invalid_value(Unexpected::Signed(segments), &self)),
                }
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<ByteCounting, E> {
                match text {
                    "off" => Ok(ByteCounting(None)),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Limit)
    }
}

/// An initial window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Initial(pub(super) InitialWindow);

/// Segments; a larger initial window is a mistake.
const LARGEST_INITIAL_WINDOW: i64 = 1_000_000;

impl<'de> Deserialize<'de> for Initial {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Initial, D::Error> {
        struct Window;
        impl Visitor<'_> for Window {
            type Value = Initial;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"rfc3390\", \"rfc6928\" or 1 to {LARGEST_INITIAL_WINDOW} segments")
            }
            fn visit_i64<E: Error>(self, segments: i64) -> Result<Initial, E> {
                match segments {
                    1..=LARGEST_INITIAL_WINDOW => {
                        Ok(Initial(InitialWindow::Segments(segments as u32)))
                    }
                    _ => Err(E::invalid_value(Unexpected::Signed(segments), &self)),
                }
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Initial, E> {
                match text {
                    "rfc3390" => Ok(Initial(InitialWindow::Rfc3390)),
                    "rfc6928" => Ok(Initial(InitialWindow::Rfc6928)),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Window)
    }
}

/// A value, or one of a few words.
macro_rules! words {
    (
        $(#[$doc:meta])*
        $Type:ident expects $expected:literal {
            $($word:literal => $Word:ident,)+
            other text => $Other:ident($Value:ty),
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(super) enum $Type {
            $($Word,)+
            $Other($Value),
        }

        impl<'de> Deserialize<'de> for $Type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$Type, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $Type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_str<E: Error>(self, text: &str) -> Result<$Type, E> {
                        match text {
                            $($word => Ok($Type::$Word),)+
                            other => other.parse().map($Type::$Other).map_err(|_: UnitError| {
                                E::custom(format_args!("expected {}", $expected))
                            }),
                        }
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }
    };
}

words! {
    /// How long an acknowledgment may be delayed.
    DelayedAck expects "\"off\" or a duration, such as \"40 ms\"" {
        "off" => Off,
        other text => After(Duration),
    }
}

words! {
    /// How long a connection may make no progress.
    UserTimeout expects "\"off\" or a duration, such as \"100 s\"" {
        "off" => Off,
        other text => After(Duration),
    }
}

words! {
    /// The slow-start threshold of a new connection.
    Ssthresh expects "\"infinite\", \"receive-window\" or a size, such as \"20 segments\"" {
        "infinite" => Infinite,
        "receive-window" => ReceiveWindow,
        other text => At(Size),
    }
}
