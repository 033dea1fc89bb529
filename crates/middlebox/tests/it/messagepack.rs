//! The text of what base stations tell each other.

use handoff::messagepack::{Error, read, write};
use handoff::{Answer, Request};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A value of every kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kinds {
    whole: (u8, u16, u32, u64, u128),
    signed: (i8, i16, i32, i64, i128),
    floats: (f32, f64),
    truth: bool,
    letter: char,
    text: String,
    nothing: (),
    same: Same,
    maybe: [Option<u64>; 2],
    list: Vec<Shape>,
    table: BTreeMap<u16, String>,
    tagged: Vec<Tagged>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Same;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Unit,
    Newtype(i64),
    Tuple(u32, String),
    Struct { at: u64 },
}

/// Whose fields are read before its variant is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    Off,
    On { share: f64, times: i32, names: Vec<String>, maybe: Option<u8> },
}

prop_compose! {
    fn kinds()(
        whole in any::<(u8, u16, u32, u64, u128)>(),
        signed in any::<(i8, i16, i32, i64, i128)>(),
        floats in (-1e30f32..1e30, -1e300..1e300),
        (truth, letter, maybe) in any::<(bool, char, [Option<u64>; 2])>(),
        // Longer than fits in one byte, and in two.
        text in prop_oneof![any::<String>(), (0usize..70_000).prop_map(|len| "a".repeat(len))],
        list in prop::collection::vec(shape(), 0..40),
        table in prop::collection::btree_map(any::<u16>(), any::<String>(), 0..20),
        tagged in prop::collection::vec(tagged(), 0..3),
    ) -> Kinds {
        let (nothing, same) = ((), Same);
        Kinds { whole, signed, floats, truth, letter, text, nothing, same, maybe, list, table, tagged }
    }
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Unit),
        any::<i64>().prop_map(Shape::Newtype),
        (any::<u32>(), any::<String>()).prop_map(|(number, text)| Shape::Tuple(number, text)),
        any::<u64>().prop_map(|at| Shape::Struct { at }),
    ]
}

fn tagged() -> impl Strategy<Value = Tagged> {
    let names = prop::collection::vec(any::<String>(), 0..3);
    let on = (-1e9..1e9, any::<i32>(), names, any::<Option<u8>>());
    prop_oneof![
        Just(Tagged::Off),
        on.prop_map(|(share, times, names, maybe)| Tagged::On { share, times, names, maybe })
    ]
}

proptest! {
    #[test]
    fn what_is_read_is_what_was_written(kinds in kinds()) {
        prop_assert_eq!(read(&write(&kinds)), Ok(kinds));
    }

    #[test]
    fn a_text_with_bytes_missing_or_left_is_refused(kinds in kinds(), cut in any::<prop::sample::Index>()) {
        let mut text = write(&kinds);
        prop_assert!(read::<Kinds>(&text[..cut.index(text.len())]).is_err());
        text.push(0);
        prop_assert_eq!(read::<Kinds>(&text), Err(Error::Left));
    }

    #[test]
    fn a_damaged_text_is_read_or_refused(
        kinds in kinds(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        noise in any::<Vec<u8>>(),
    ) {
        let mut text = write(&kinds);
        let at = at.index(text.len());
        text[at] = byte;
        let _ = (read::<Kinds>(&text), read::<serde_json::Value>(&text));
        let _ = (Answer::from_text(&noise), Request::from_text(&noise));
    }
}

#[test]
fn fields_that_are_not_known_are_passed_over() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Fewer {
        at: u64,
    }
    let more = BTreeMap::from([("a", vec![(1, "b")]), ("z", vec![])]);
    #[derive(Serialize)]
    struct More<'a> {
        before: &'a BTreeMap<&'a str, Vec<(i8, &'a str)>>,
        at: u64,
        after: u128,
    }
    let text = write(&More { before: &more, at: 7, after: u128::MAX });
    assert_eq!(read(&text), Ok(Fewer { at: 7 }));
}

#[test]
fn arrays_in_one_another_without_end_are_refused() {
    assert_eq!(read::<serde_json::Value>(&[0x91; 100_000]), Err(Error::Deep));
}
