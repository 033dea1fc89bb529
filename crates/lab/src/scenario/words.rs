//! The words of tables that are kept elsewhere, as their crates tell them to serde.

use super::links::Fortune;
use crate::document::Node;
use crate::error::Problem;
use crate::profile::Profile;
use crate::shape::{Shape, word};
use link::{Damage, JitterShape};
use middlebox::Aim;
use middlebox::fec::Signal;
use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde_json::{Value, json};
use tcp::congestion::Congestion;
use tcp::mechanism::{Fields, Strategy, Suppression, Transport};
use tcp::{Estimator, Pipe, Recovery, Reduction, Restart, SsthreshOnBackoff, Validation};
use wire::PathForm;

macro_rules! words {
    ($($Enum:ty)*) => {$(
        impl Shape for $Enum {
            fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<$Enum> {
                word(node, names::<$Enum>(), meaning, problems)
            }

            fn schema() -> Value {
                json!({ "enum": names::<$Enum>() })
            }
        }
    )*};
}

words! {
    Profile Recovery Pipe Congestion Reduction Estimator Restart SsthreshOnBackoff Validation
    Strategy Fields Transport Suppression PathForm super::Report super::Transport super::Headers super::Stack
    super::Corrupted super::TunnelNotices super::AttackKind super::attacks::Knowledge Aim Fortune
}

macro_rules! foreign_words {
    ($($Type:ty { $($word:literal => $value:expr,)+ })*) => {$(
        impl Shape for $Type {
            fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<$Type> {
                let meaning = |text: &str| match text {
                    $($word => Some($value),)+
                    _ => None,
                };
                word(node, &[$($word),+], meaning, problems)
            }

            fn schema() -> Value {
                json!({ "enum": [$($word),+] })
            }
        }
    )*};
}

foreign_words! {
    Damage {
        "loss" => Damage::Loss,
        "corruption" => Damage::Corruption,
    }
    Signal {
        "all" => Signal::All,
        "none" => Signal::None,
        "share" => Signal::Share,
    }
    JitterShape {
        "uniform" => JitterShape::Uniform,
        "bell" => JitterShape::Bell,
    }
}

fn meaning<T: DeserializeOwned>(name: &str) -> Option<T> {
    T::deserialize(IntoDeserializer::<Error>::into_deserializer(name)).ok()
}

/// The names of an enum's variants.
pub(super) fn names<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // It is asked for an enum, says by which names it would know one, and gets none.
    let _ = T::deserialize(Ask(&mut names));
    names
}

struct Ask<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Ask<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("not an enum"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = variants;
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
