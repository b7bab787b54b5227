//! Sections: structs with one field per row of the table, and the macro that declares them.

use crate::decode::context::{DecodeContext, Found, Rows};
use crate::decode::table::{SectionInfo, Shape};
use crate::diagnostics::Place;
use crate::json5::{Member, Node};
use crate::span::Span;

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands; for a default, where its section stands.
    pub place: Place,
    /// Where its key stands; for a default, where its section stands.
    pub key: Place,
    /// Whether the file holds it, or it is a default.
    pub written: bool,
}

/// A way to read one value.
pub trait ValueType {
    /// What is read.
    type Value;
    /// How it is described in the reference and in the schema.
    const SHAPE: Shape;
    /// Reads it, or says what is wrong with it. `None` without a problem means: as if it were not there.
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Self::Value>;
}

/// A part of the configuration with keys of its own.
pub trait Section: Rows + Sized {
    /// What the table says about it.
    const INFO: SectionInfo;
    /// One that stands there and holds nothing, not even defaults.
    fn empty(place: Place) -> Self;

    /// Reads it from an object's members.
    fn from_members(cx: &mut DecodeContext<'_>, span: Span, members: &[Member]) -> Self {
        let mut section = Self::empty(cx.at(span));
        cx.section(&Self::INFO, span, members, &mut section);
        section
    }
}

/// Reads what was found for a field, or empties it; says whether it then holds something.
pub fn fill<K: ValueType>(
    field: &mut Option<Spanned<K::Value>>,
    cx: &mut DecodeContext<'_>,
    found: Option<&Found<'_>>,
) -> bool {
    *field = None;
    let Some(&Found { name, node, place, key, written }) = found else { return false };
    let Some(value) = K::read(cx, name, node) else { return false };
    // It is empty, so that nothing is forgotten; to drop what is not there would be a third of the code.
    std::mem::forget(field.replace(Spanned { value, place, key, written }));
    true
}

/// Makes a part of the table of fields: a struct with one field a row, its reader, and its description.
///
/// A row reads `field: ValueType = "key", default, "rules", "help";`.
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
            /// Where it stands.
            pub place: $crate::diagnostics::Place,
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
                Self { place, $($field: None,)* }
            }
        }

        impl $crate::decode::Rows for $section {
            fn fill(
                &mut self,
                row: usize,
                cx: &mut $crate::decode::DecodeContext<'_>,
                found: Option<&$crate::decode::Found<'_>>,
            ) -> bool {
                #[expect(non_camel_case_types, reason = "they are the names of the fields, to count them")]
                enum Row { $($field,)* }
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
