//! Values in MessagePack, in which structs are maps from names to values.
//!
//! [`write`] is `rmp_serde`'s. [`read`] is not: serde compiles the functions of a reader once for every type that is
//! read, and `rmp_serde`'s each read a value of any kind, whichever kind the type asks for. Here, what they share is not
//! generic, and they ask for the kind that [`write`] writes.

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, EnumAccess, IntoDeserializer as _, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use serde::{Deserializer, Serialize};
use std::fmt::Display;
use thiserror::Error;

/// Arrays and maps in one another, of values whose type does not say what comes next.
const DEPTH: u32 = 64;

/// Why bytes are not the value that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// They end too early.
    #[error("the text ends within a value")]
    Ended,
    /// Bytes follow the value.
    #[error("bytes follow the value")]
    Left,
    /// Another kind of value comes.
    #[error("expected {0}")]
    Expected(&'static str),
    /// Arrays and maps are too deep in one another.
    #[error("more than {DEPTH} arrays and maps in one another")]
    Deep,
    /// The type has no such value.
    #[error("{0}")]
    Value(String),
}

impl de::Error for Error {
    fn custom<T: Display>(message: T) -> Error {
        Error::Value(message.to_string())
    }
}

/// The text of a value.
pub fn write(value: &impl Serialize) -> Vec<u8> {
    // Writing to memory fails only for types that have no representation.
    rmp_serde::to_vec_named(value).unwrap_or_default()
}

/// The value of a text by [`write`].
///
/// # Errors
/// If the text is of no such value, or of more than it.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    let mut reader = Reader { rest: text, depth: 0 };
    let value = T::deserialize(&mut reader)?;
    if reader.rest.is_empty() { Ok(value) } else { Err(Error::Left) }
}

/// What the first bytes of a value say; its bytes or its values follow.
enum Head {
    Nil,
    Boolean(bool),
    Unsigned(u64),
    Negative(i64),
    Float(f64),
    Text(usize),
    Bytes(usize),
    Array(usize),
    Map(usize),
}

struct Reader<'de> {
    rest: &'de [u8],
    depth: u32,
}

impl<'de> Reader<'de> {
    fn take(&mut self, len: usize) -> Result<&'de [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Error::Ended)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Error::Ended)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_be_bytes)
    }

    fn head(&mut self) -> Result<Head, Error> {
        let signed = |value: i64| match u64::try_from(value) {
            Ok(value) => Head::Unsigned(value),
            Err(_) => Head::Negative(value),
        };
        Ok(match self.u8()? {
            byte @ 0x00..=0x7f => Head::Unsigned(byte.into()),
            byte @ 0x80..=0x8f => Head::Map((byte & 0x0f).into()),
            byte @ 0x90..=0x9f => Head::Array((byte & 0x0f).into()),
            byte @ 0xa0..=0xbf => Head::Text((byte & 0x1f).into()),
            0xc0 => Head::Nil,
            byte @ 0xc2..=0xc3 => Head::Boolean(byte == 0xc3),
            0xc4 => Head::Bytes(self.u8()?.into()),
            0xc5 => Head::Bytes(self.u16()?.into()),
            0xc6 => Head::Bytes(self.u32()? as usize),
            0xca => Head::Float(f32::from_bits(self.u32()?).into()),
            0xcb => Head::Float(f64::from_bits(self.u64()?)),
            0xcc => Head::Unsigned(self.u8()?.into()),
            0xcd => Head::Unsigned(self.u16()?.into()),
            0xce => Head::Unsigned(self.u32()?.into()),
            0xcf => Head::Unsigned(self.u64()?),
            0xd0 => signed(self.u8()?.cast_signed().into()),
            0xd1 => signed(self.u16()?.cast_signed().into()),
            0xd2 => signed(self.u32()?.cast_signed().into()),
            0xd3 => signed(self.u64()?.cast_signed()),
            0xd9 => Head::Text(self.u8()?.into()),
            0xda => Head::Text(self.u16()?.into()),
            0xdb => Head::Text(self.u32()? as usize),
            0xdc => Head::Array(self.u16()?.into()),
            0xdd => Head::Array(self.u32()? as usize),
            0xde => Head::Map(self.u16()?.into()),
            0xdf => Head::Map(self.u32()? as usize),
            byte @ 0xe0..=0xff => Head::Negative(byte.cast_signed().into()),
            0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => return Err(Error::Expected("no extension")),
        })
    }

    fn boolean(&mut self) -> Result<bool, Error> {
        match self.head()? {
            Head::Boolean(value) => Ok(value),
            _ => Err(Error::Expected("a boolean")),
        }
    }

    fn unsigned(&mut self) -> Result<u64, Error> {
        match self.head()? {
            Head::Unsigned(value) => Ok(value),
            _ => Err(Error::Expected("a whole number that is not negative")),
        }
    }

    fn signed(&mut self) -> Result<i64, Error> {
        match self.head()? {
            Head::Negative(value) => Ok(value),
            Head::Unsigned(value) if value <= i64::MAX as u64 => Ok(value.cast_signed()),
            _ => Err(Error::Expected("a whole number of 64 bits")),
        }
    }

    fn float(&mut self) -> Result<f64, Error> {
        match self.head()? {
            Head::Float(value) => Ok(value),
            _ => Err(Error::Expected("a floating-point number")),
        }
    }

    fn utf8(&mut self, len: usize) -> Result<&'de str, Error> {
        str::from_utf8(self.take(len)?).map_err(|_| Error::Expected("UTF-8"))
    }

    fn text(&mut self) -> Result<&'de str, Error> {
        match self.head()? {
            Head::Text(len) => self.utf8(len),
            _ => Err(Error::Expected("a text")),
        }
    }

    fn bytes(&mut self) -> Result<&'de [u8], Error> {
        match self.head()? {
            Head::Bytes(len) => self.take(len),
            _ => Err(Error::Expected("bytes")),
        }
    }

    /// There is no kind for so many bits: they are bytes.
    fn wide(&mut self) -> Result<u128, Error> {
        let bytes = self.bytes()?.try_into().map_err(|_| Error::Expected("16 bytes"))?;
        Ok(u128::from_be_bytes(bytes))
    }

    fn wide_signed(&mut self) -> Result<i128, Error> {
        self.wide().map(u128::cast_signed)
    }

    fn values(&mut self) -> Result<usize, Error> {
        match self.head()? {
            Head::Array(len) => Ok(len),
            _ => Err(Error::Expected("an array")),
        }
    }

    fn entries(&mut self) -> Result<usize, Error> {
        match self.head()? {
            Head::Map(len) => Ok(len),
            _ => Err(Error::Expected("a map")),
        }
    }

    /// If nothing comes: then nothing is left of it.
    fn is_nil(&mut self) -> bool {
        let rest = self.rest.strip_prefix(&[0xc0]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip(&mut self) -> Result<(), Error> {
        // Each is of a byte at least: the sum of what arrays and maps announce is bounded by the text.
        let mut values = 1_u64;
        while values > 0 {
            values -= 1;
            match self.head()? {
                Head::Text(len) | Head::Bytes(len) => drop(self.take(len)?),
                Head::Array(len) => values += len as u64,
                Head::Map(len) => values += 2 * len as u64,
                _ => {}
            }
        }
        Ok(())
    }

    fn sequence<V: Visitor<'de>>(&mut self, len: usize, visitor: V) -> Result<V::Value, Error> {
        let mut values = Values { reader: self, left: len };
        let value = visitor.visit_seq(&mut values)?;
        values.end()?;
        Ok(value)
    }

    fn map<V: Visitor<'de>>(&mut self, len: usize, visitor: V) -> Result<V::Value, Error> {
        let mut values = Values { reader: self, left: len };
        let value = visitor.visit_map(&mut values)?;
        values.end()?;
        Ok(value)
    }
}

/// Values of an array, or entries of a map.
struct Values<'a, 'de> {
    reader: &'a mut Reader<'de>,
    left: usize,
}

impl Values<'_, '_> {
    fn next(&mut self) -> bool {
        let is_left = self.left > 0;
        self.left -= usize::from(is_left);
        is_left
    }

    fn end(&self) -> Result<(), Error> {
        if self.left == 0 { Ok(()) } else { Err(Error::Expected("fewer values")) }
    }
}

impl<'de> SeqAccess<'de> for Values<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if self.next() { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.min(self.reader.rest.len()))
    }
}

impl<'de> MapAccess<'de> for Values<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if self.next() { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.min(self.reader.rest.len()))
    }
}

/// The value of a variant that has one.
struct Variant<'a, 'de>(&'a mut Reader<'de>);

impl<'a, 'de> EnumAccess<'de> for Variant<'a, 'de> {
    type Error = Error;
    type Variant = Variant<'a, 'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Variant<'a, 'de>), Error> {
        Ok((seed.deserialize(&mut *self.0)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        if self.0.is_nil() { Ok(()) } else { Err(Error::Expected("no value")) }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        let len = self.0.values()?;
        self.0.sequence(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let len = self.0.entries()?;
        self.0.map(len, visitor)
    }
}

/// `$function` of [`Deserializer`] gives what `$read` reads to `$visit`.
macro_rules! as_read {
    ($($function:ident $read:ident $visit:ident;)*) => {
        $(fn $function<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.$read()?)
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    as_read! {
        deserialize_bool boolean visit_bool;
        deserialize_u8 unsigned visit_u64;
        deserialize_u16 unsigned visit_u64;
        deserialize_u32 unsigned visit_u64;
        deserialize_u64 unsigned visit_u64;
        deserialize_u128 wide visit_u128;
        deserialize_i8 signed visit_i64;
        deserialize_i16 signed visit_i64;
        deserialize_i32 signed visit_i64;
        deserialize_i64 signed visit_i64;
        deserialize_i128 wide_signed visit_i128;
        deserialize_f32 float visit_f64;
        deserialize_f64 float visit_f64;
        deserialize_char text visit_str;
        deserialize_str text visit_borrowed_str;
        deserialize_string text visit_str;
        deserialize_identifier text visit_str;
        deserialize_bytes bytes visit_borrowed_bytes;
        deserialize_byte_buf bytes visit_bytes;
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.depth == DEPTH {
            return Err(Error::Deep);
        }
        self.depth += 1;
        let value = match self.head()? {
            Head::Nil => visitor.visit_unit(),
            Head::Boolean(value) => visitor.visit_bool(value),
            Head::Unsigned(value) => visitor.visit_u64(value),
            Head::Negative(value) => visitor.visit_i64(value),
            Head::Float(value) => visitor.visit_f64(value),
            Head::Text(len) => visitor.visit_borrowed_str(self.utf8(len)?),
            Head::Bytes(len) => visitor.visit_borrowed_bytes(self.take(len)?),
            Head::Array(len) => self.sequence(len, visitor),
            Head::Map(len) => self.map(len, visitor),
        };
        self.depth -= 1;
        value
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.skip()?;
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_nil() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_nil() { visitor.visit_unit() } else { Err(Error::Expected("no value")) }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.values()? {
            0 => visitor.visit_unit(),
            _ => Err(Error::Expected("an array without values")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let len = self.values()?;
        self.sequence(len, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let len = self.entries()?;
        self.map(len, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.head()? {
            Head::Text(len) => {
                let name: StrDeserializer<'_, Error> = self.utf8(len)?.into_deserializer();
                visitor.visit_enum(name)
            }
            Head::Map(1) => visitor.visit_enum(Variant(self)),
            _ => Err(Error::Expected("a variant")),
        }
    }
}
