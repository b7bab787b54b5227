//! Watches.

use containerpilot_core::plan::{Watch, WatchKind};

use super::Lower;
use crate::decode::Section;
use crate::fields::WatchFields;
use crate::service_name::{is_service_name, service_name_rule};
use crate::values::value_of;

impl Lower<'_> {
    pub(super) fn watch(&mut self, fields: &WatchFields) -> Option<Watch> {
        let name = match &fields.name {
            None => {
                self.required(&WatchFields::INFO, fields.place, fields.place.first_byte(), "name");
                None
            }
            Some(given) if !is_service_name(&given.value) => {
                let help = service_name_rule(&given.value);
                self.error(given.place, format!("`{}` is not a valid service name", given.value), &help);
                None
            }
            Some(given) => Some(given.value.clone()),
        };
        let at = fields.name.as_ref().map_or(fields.place.first_byte(), |given| given.place);
        let interval =
            self.positive(&WatchFields::INFO, fields.place, at, fields.interval.as_ref(), "interval");
        let kind = WatchKind::Service { tag: value_of(&fields.tag), dc: value_of(&fields.dc) };
        Some(Watch { name: name?, interval: interval?, kind })
    }
}
