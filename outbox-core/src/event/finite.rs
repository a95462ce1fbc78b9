//! JSON has no word for NaN and the infinities, and `serde_json` writes `null` for them without a sound: a number
//! would come back as nothing, or not at all. This walks a value and finds them.

use serde::ser::{self, Serialize};
use std::fmt::{self, Display};

/// Whether every floating-point number in a value can be written as JSON.
pub(crate) fn is_finite(value: &impl Serialize) -> bool {
    value.serialize(Walker) != Err(Found::NotFinite)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    NotFinite,
    /// The value's own error; `serde_json` has met it too.
    Other,
}

impl Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number is not finite")
    }
}

impl std::error::Error for Found {}

impl ser::Error for Found {
    fn custom<T: Display>(_: T) -> Self {
        Self::Other
    }
}

#[derive(Clone, Copy)]
struct Walker;

type Walked = Result<(), Found>;

macro_rules! passed_over {
    ($($method:ident: $type:ty),+ $(,)?) => { $(
        fn $method(self, _: $type) -> Walked {
            Ok(())
        }
    )+ };
}

impl ser::Serializer for Walker {
    type Ok = ();
    type Error = Found;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    passed_over! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    fn serialize_f32(self, number: f32) -> Walked {
        if number.is_finite() { Ok(()) } else { Err(Found::NotFinite) }
    }

    fn serialize_f64(self, number: f64) -> Walked {
        if number.is_finite() { Ok(()) } else { Err(Found::NotFinite) }
    }

    fn serialize_none(self) -> Walked {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Walked {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Walked {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Walked {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Walked {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Walked {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Found> {
        Ok(self)
    }

    fn collect_str<T: Display + ?Sized>(self, _: &T) -> Walked {
        Ok(())
    }
}

/// The parts of a compound value, each walked in turn.
macro_rules! walk_parts {
    ($($trait:ident :: $method:ident($($name:ty)?)),+ $(,)?) => { $(
        impl ser::$trait for Walker {
            type Ok = ();
            type Error = Found;

            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Walked {
                value.serialize(*self)
            }

            fn end(self) -> Walked {
                Ok(())
            }
        }
    )+ };
}

walk_parts! {
    SerializeSeq::serialize_element(),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(&'static str),
    SerializeStructVariant::serialize_field(&'static str),
}

impl ser::SerializeMap for Walker {
    type Ok = ();
    type Error = Found;

    // As a key a float is a text, and serde_json refuses one that is not finite by itself.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Walked {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Walked {
        value.serialize(*self)
    }

    fn end(self) -> Walked {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_finite;
    use std::collections::BTreeMap;

    #[test]
    fn a_number_that_json_cannot_write_is_found_wherever_it_is() {
        assert!(is_finite(&(1.5, Some(2.5_f32), "null", None::<f64>, [f64::MAX, f64::MIN_POSITIVE])));
        let nested = BTreeMap::from([("a", vec![Some((1, f64::NAN))])]);
        assert!(!is_finite(&nested));
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(!is_finite(&Some(number)));
            assert!(!is_finite(&serde_json::json!({}).as_object().map(|_| number)));
        }
        assert!(!is_finite(&f32::NAN));
    }
}
