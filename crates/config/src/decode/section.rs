//! Sections: structs with one field per row of the table, and the macro that declares them.

use crate::decode::context::{DecodeContext, Found, Rows};
use crate::decode::field_table::{SectionInfo, Shape};
use crate::diagnostics::Place;
use crate::json5::{Member, Node};
use crate::span::Span;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its place; for a default, the place of its section.
    pub place: Place,
    /// The place of its key; for a default, the place of its section.
    pub key: Place,
    /// True if it is written in the file; otherwise it is a default.
    pub written: bool,
}

/// A type of values, with its decoder.
pub trait ValueType {
    /// The decoded value.
    type Value;
    /// Its description in the reference and in the schema.
    const SHAPE: Shape;
    /// Decodes a value or reports a problem. `None` without a problem means that the key counts as absent.
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Self::Value>;
}

/// A section: an object with keys of its own.
pub trait Section: Rows + Sized {
    /// Its part of the table.
    const INFO: SectionInfo;
    /// A section without any value, not even defaults.
    fn empty(place: Place) -> Self;

    /// Decodes the members of an object.
    fn from_members(cx: &mut DecodeContext<'_>, span: Span, members: &[Member]) -> Self {
        let mut section = Self::empty(cx.at(span));
        cx.section(&Self::INFO, span, members, &mut section);
        section
    }
}

/// Decodes the value found for a field, or clears the field. Returns true if it then has a value.
pub fn fill<K: ValueType>(
    field: &mut Option<Spanned<K::Value>>,
    cx: &mut DecodeContext<'_>,
    found: Option<&Found<'_>>,
) -> bool {
    *field = None;
    let Some(&Found { name, node, place, key, written }) = found else { return false };
    let Some(value) = K::read(cx, name, node) else { return false };
    // The field is empty, so that nothing leaks. Without this, the code to drop it makes up a third of this function.
    std::mem::forget(field.replace(Spanned { value, place, key, written }));
    true
}

/// Takes a field that another section has and this one does not, if it is allowed. A function of its own, because a
/// section has many fields of few types.
pub fn inherit<T: Clone>(own: &mut Option<Spanned<T>>, other: &Option<Spanned<T>>, allowed: Option<bool>) {
    let is_own = own.as_ref().is_some_and(|own| own.written);
    if let Some(given) = other.as_ref().filter(|given| given.written && !is_own && allowed == Some(true)) {
        *own = Some(given.clone());
    }
}

/// Declares a section of the table: a struct with one field per row, its decoder and its description.
///
/// A row has the form `field: ValueType = "key", default, "rules", "help";`.
#[macro_export]
macro_rules! section {
    (
        $(#[$meta:meta])*
        pub struct $section:ident = $name:literal, $title:literal, $keys:ident, $about:literal {
            $($field:ident: $kind:ty = $key:literal, $default:expr, $rules:literal, $help:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $section {
            /// Its place.
            pub place: $crate::diagnostics::Place,
            /// The rows whose key is written with null.
            pub unset: Vec<usize>,
            $(#[doc = $help] pub $field: Option<$crate::decode::Spanned<<$kind as $crate::decode::ValueType>::Value>>,)*
        }

        impl $crate::decode::Section for $section {
            const INFO: $crate::decode::SectionInfo = $crate::decode::SectionInfo {
                name: $name,
                title: $title,
                help: $about,
                any_case: $crate::section!(@any_case $keys),
                fields: &[$($crate::section!(@row $kind, $key, $default, $rules, $help)),*],
            };

            fn empty(place: $crate::diagnostics::Place) -> Self {
                Self { place, unset: Vec::new(), $($field: None,)* }
            }
        }

        impl $section {
            /// The keys that are written, with their places.
            pub fn written(&self) -> Vec<(&'static str, $crate::diagnostics::Place)> {
                let mut written = Vec::new();
                $(
                    if let Some(given) = &self.$field && given.written {
                        written.push(($key, given.key));
                    }
                )*
                written
            }

            /// Takes the fields that others have and this section does not, where `row` allows it. A key that is written
            /// with null is not missing.
            pub fn inherit(&mut self, other: &Self, row: impl Fn(&str) -> bool) {
                let rows = <Self as $crate::decode::Section>::INFO.fields.iter().enumerate();
                let allowed: Vec<bool> =
                    rows.map(|(nth, field)| !self.unset.contains(&nth) && row(field.key)).collect();
                let mut allowed = allowed.into_iter();
                $($crate::decode::inherit(&mut self.$field, &other.$field, allowed.next());)*
            }
        }

        impl $crate::decode::Rows for $section {
            fn fill(
                &mut self,
                row: usize,
                cx: &mut $crate::decode::DecodeContext<'_>,
                found: Option<&$crate::decode::Found<'_>>,
            ) -> bool {
                #[expect(non_camel_case_types, reason = "the variants are the names of the fields")]
                enum Row { $($field,)* }
                if found.is_none() {
                    self.unset.push(row);
                }
                match row {
                    $(_ if row == Row::$field as usize => $crate::decode::fill::<$kind>(&mut self.$field, cx, found),)*
                    _ => false,
                }
            }
        }
    };
    (@row $kind:ty, $key:literal, $default:expr, $rules:literal, $help:literal) => {
        $crate::decode::Field {
            key: $key,
            shape: <$kind as $crate::decode::ValueType>::SHAPE,
            default: $default,
            rules: $rules,
            help: $help,
        }
    };
    (@any_case any_case) => { true };
    (@any_case exact) => { false };
}
