//! Enums as words: the names of their variants, as declared to serde.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::shape::{Shape, word};
use base::settings::names;
use link::{Damage, HostIsolation, Isolation, JitterShape};
use middlebox::Aim;
use middlebox::fec::Signal;
use serde::de::value::Error;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::{Value, json};
use tcp::congestion::Congestion;
use tcp::mechanism::{Fields, Strategy, Suppression, Transport};
use tcp::{
    Estimator, MtuProbing, Pipe, Recovery, Reduction, Restart, RoundEnd, SsthreshOnBackoff,
    Validation,
};
use wire::PathForm;

/// Makes enums that serde reads by the names of their variants values of scenario files.
macro_rules! words {
    ($($Enum:ty)*) => {$(
        impl $crate::reading::shape::Shape for $Enum {
            fn read(
                node: &$crate::reading::document::Node<'_>,
                problems: &mut Vec<$crate::reading::error::Problem>,
            ) -> Option<$Enum> {
                $crate::reading::words::read(node, problems)
            }

            fn schema() -> serde_json::Value {
                $crate::reading::words::schema::<$Enum>()
            }
        }
    )*};
}
pub(crate) use words;

words! {
    Recovery Pipe Congestion Reduction Estimator Restart RoundEnd SsthreshOnBackoff Validation
    MtuProbing Strategy Fields Transport Suppression PathForm Aim
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
    Isolation {
        "flows" => Isolation::Flows,
        "srchost" => Isolation::SourceHost,
        "dsthost" => Isolation::DestinationHost,
    }
    HostIsolation {
        "flows" => HostIsolation::Flows,
        "dual-srchost" => HostIsolation::DualSourceHost,
        "dual-dsthost" => HostIsolation::DualDestinationHost,
        "triple-isolate" => HostIsolation::Triple,
    }
}

/// The variant of an enum that is written here.
pub(crate) fn read<T: DeserializeOwned>(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<T> {
    word(node, names::<T>(), meaning, problems)
}

/// The schema of an enum.
pub(crate) fn schema<T: DeserializeOwned>() -> Value {
    json!({ "enum": names::<T>() })
}

fn meaning<T: DeserializeOwned>(name: &str) -> Option<T> {
    T::deserialize(IntoDeserializer::<Error>::into_deserializer(name)).ok()
}
