//! Requests: the resource and the scope around encoded items.
//!
//! The messages for spans, log records and metrics differ in names, but not in the numbers of these fields.

use crate::span::{AttributeValue, write_attribute};
use crate::wire::{Message, varint, varint_len};

/// Who sends: an encoded `Resource` and `InstrumentationScope`.
#[derive(Clone, Debug)]
pub struct Resource {
    resource: Vec<u8>,
    scope: Vec<u8>,
}

impl Resource {
    /// A resource with these attributes, and the scope of this program.
    #[must_use]
    pub fn new(attributes: &[(String, AttributeValue)], name: &str, version: &str) -> Self {
        let (mut resource, mut scope) = (Vec::new(), Vec::new());
        for (key, value) in attributes {
            write_attribute(&mut Message(&mut resource), 1, key, value);
        }
        let mut fields = Message(&mut scope);
        fields.text(1, name);
        fields.text(2, version);
        Self { resource, scope }
    }
}

/// The request that sends items.
#[must_use]
pub fn write_request(resource: &Resource, items: &[u8]) -> Vec<u8> {
    let Resource { resource, scope } = resource;
    let field = |length: usize| 1 + varint_len(length as u64) + length;
    let of_scope = field(scope.len()) + items.len();
    let of_resource = field(resource.len()) + field(of_scope);
    let mut out = Vec::with_capacity(field(of_resource));
    let mut begin = |number: u8, length: usize, content: &[u8]| {
        out.push(number << 3 | 2);
        varint(&mut out, length as u64);
        out.extend_from_slice(content);
    };
    begin(1, of_resource, &[]);
    begin(1, resource.len(), resource);
    begin(2, of_scope, &[]);
    begin(1, scope.len(), scope);
    out.extend_from_slice(items);
    out
}
