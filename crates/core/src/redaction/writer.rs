//! A serializer in front of another one, which gets hashes in place of texts.

use alloc::string::String;
use core::fmt::Display;

use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};
use serde::{Serialize, Serializer};

use crate::recorded::Manner;
use crate::redaction::hashes::Hashes;

/// A serializer that gets hashes in place of texts.
pub(super) struct Writer<'a, S> {
    pub(super) out: S,
    pub(super) hashes: &'a Hashes,
    pub(super) manner: Manner,
    /// Single bytes in a list are a text that serde does not know as one.
    pub(super) is_in_list: bool,
}

/// A value, on its way to the other serializer.
struct Hashed<'a, T: ?Sized> {
    value: &'a T,
    hashes: &'a Hashes,
    manner: Manner,
    is_in_list: bool,
}

impl<T: Serialize + ?Sized> Serialize for Hashed<'_, T> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let Self { value, hashes, manner, is_in_list } = *self;
        value.serialize(Writer { out, hashes, manner, is_in_list })
    }
}

/// The parts of a value.
pub(super) struct Parts<'a, C> {
    out: C,
    hashes: &'a Hashes,
    manner: Manner,
    are_in_list: bool,
}

impl<'a, C> Parts<'a, C> {
    fn part<'v, T: ?Sized>(&self, value: &'v T) -> Hashed<'v, T>
    where
        'a: 'v,
    {
        Hashed { value, hashes: self.hashes, manner: self.manner, is_in_list: self.are_in_list }
    }

    /// The key of a map is a name.
    fn key<'v, T: ?Sized>(&self, value: &'v T) -> Hashed<'v, T>
    where
        'a: 'v,
    {
        Hashed { manner: Manner::AsIs, ..self.part(value) }
    }
}

impl<'a, S> Writer<'a, S> {
    fn part<'v, T: ?Sized>(&self, value: &'v T) -> Hashed<'v, T>
    where
        'a: 'v,
    {
        Hashed { value, hashes: self.hashes, manner: self.manner, is_in_list: false }
    }
}

/// Begins a value with parts.
macro_rules! begin {
    ($self:ident, $are_in_list:expr, $begin:ident($($argument:expr),*)) => {{
        let Writer { out, hashes, manner, .. } = $self;
        Ok(Parts { out: out.$begin($($argument),*)?, hashes, manner, are_in_list: $are_in_list })
    }};
}

/// Passes a value on that is no text.
macro_rules! pass {
    ($($name:ident: $type:ty),*) => {$(
        fn $name(self, value: $type) -> Result<S::Ok, S::Error> {
            self.out.$name(value)
        }
    )*};
}

impl<'a, S: Serializer> Serializer for Writer<'a, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Parts<'a, S::SerializeSeq>;
    type SerializeTuple = Parts<'a, S::SerializeTuple>;
    type SerializeTupleStruct = Parts<'a, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Parts<'a, S::SerializeTupleVariant>;
    type SerializeMap = Parts<'a, S::SerializeMap>;
    type SerializeStruct = Parts<'a, S::SerializeStruct>;
    type SerializeStructVariant = Parts<'a, S::SerializeStructVariant>;

    pass! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
        serialize_f32: f32, serialize_f64: f64
    }

    fn serialize_u8(self, value: u8) -> Result<S::Ok, S::Error> {
        self.out.serialize_u8(if self.is_in_list && self.manner != Manner::AsIs { 0 } else { value })
    }

    fn serialize_char(self, value: char) -> Result<S::Ok, S::Error> {
        self.out.serialize_char(if self.manner == Manner::AsIs { value } else { '#' })
    }

    fn serialize_str(self, text: &str) -> Result<S::Ok, S::Error> {
        self.out.serialize_str(&self.hashes.text(self.manner, text))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<S::Ok, S::Error> {
        self.out.serialize_bytes(&self.hashes.bytes(self.manner, bytes))
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        use core::fmt::Write;
        let mut text = String::new();
        write!(text, "{value}").map_err(serde::ser::Error::custom)?;
        self.serialize_str(&text)
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.out.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        let part = Hashed { is_in_list: self.is_in_list, ..self.part(value) };
        self.out.serialize_some(&part)
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.out.serialize_unit()
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<S::Ok, S::Error> {
        self.out.serialize_unit_struct(name)
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.out.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let mut part = self.part(value);
        if self.manner != Manner::AsIs
            && let Some(manner) = Manner::named(name)
        {
            part.manner = manner;
        }
        self.out.serialize_newtype_struct(name, &part)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let part = self.part(value);
        self.out.serialize_newtype_variant(name, index, variant, &part)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        begin!(self, true, serialize_seq(length))
    }

    fn serialize_tuple(self, length: usize) -> Result<Self::SerializeTuple, S::Error> {
        begin!(self, false, serialize_tuple(length))
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        begin!(self, false, serialize_tuple_struct(name, length))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        begin!(self, false, serialize_tuple_variant(name, index, variant, length))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        begin!(self, false, serialize_map(length))
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Self::SerializeStruct, S::Error> {
        begin!(self, false, serialize_struct(name, length))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        begin!(self, false, serialize_struct_variant(name, index, variant, length))
    }

    fn is_human_readable(&self) -> bool {
        self.out.is_human_readable()
    }
}

/// Passes on the parts of a value that have no names.
macro_rules! parts {
    ($($trait:ident: $name:ident),*) => {$(
        impl<C: $trait> $trait for Parts<'_, C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn $name<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
                let part = self.part(value);
                self.out.$name(&part)
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.out.end()
            }
        }
    )*};
}

parts! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
}

/// Passes on those that have.
macro_rules! named_parts {
    ($($trait:ident),*) => {$(
        impl<C: $trait> $trait for Parts<'_, C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), C::Error> {
                let part = self.part(value);
                self.out.serialize_field(name, &part)
            }

            fn skip_field(&mut self, name: &'static str) -> Result<(), C::Error> {
                self.out.skip_field(name)
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.out.end()
            }
        }
    )*};
}

named_parts!(SerializeStruct, SerializeStructVariant);

impl<C: SerializeMap> SerializeMap for Parts<'_, C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), C::Error> {
        let part = self.key(key);
        self.out.serialize_key(&part)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        let part = self.part(value);
        self.out.serialize_value(&part)
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.out.end()
    }
}
