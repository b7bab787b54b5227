//! Instances of templates.

use std::collections::{BTreeSet, VecDeque};

use super::unit::{self, Loaded, Unit};
use crate::document::Document;
use crate::error::ImportError;
use crate::files::Files;

/// The most instances of templates.
const MAX_INSTANCES: usize = 1000;

/// Creates the instances of templates that other units name, or the default one.
pub(super) fn instantiate(
    loaded: &mut Loaded,
    files: &dyn Files,
    document: &mut Document,
) -> Result<(), ImportError> {
    let mut wanted: VecDeque<String> = loaded.links.iter().map(|link| link.target.clone()).collect();
    let references = |unit: &Unit| -> Vec<String> {
        let keys = ["Wants", "Requires", "BindsTo", "Upholds", "OnFailure", "OnSuccess", "Unit"];
        let entries = unit.entries.iter().filter(|entry| keys.contains(&entry.key.as_str()));
        let words = entries.flat_map(|entry| entry.value.split_whitespace());
        words.filter(|word| word.contains('@')).filter_map(|word| unit.expand(word).ok()).collect()
    };
    let real = loaded.units.values().filter(|unit| !unit.is_template());
    wanted.extend(real.flat_map(&references));
    let mut count = 0;
    // The second round is for the default instances.
    for _ in 0..2 {
        while let Some(name) = wanted.pop_front() {
            if loaded.units.contains_key(&name) || count >= MAX_INSTANCES {
                continue;
            }
            if loaded.instantiate(&name, files, document)? {
                count += 1;
                wanted.extend(loaded.units.get(&name).map(&references).unwrap_or_default());
            }
        }
        let used: BTreeSet<String> = loaded.order.iter().filter_map(|name| unit::template_of(name)).collect();
        let defaults = loaded.units.values().filter(|unit| unit.is_template() && !used.contains(&unit.name));
        wanted.extend(defaults.filter_map(|unit| {
            let instance = unit.last("Install", "DefaultInstance")?;
            Some(unit.name.replacen("@.", &format!("@{}.", instance.value), 1))
        }));
    }
    let used: BTreeSet<String> = loaded.order.iter().filter_map(|name| unit::template_of(name)).collect();
    loaded.order.retain(|name| {
        let Some(unit) = loaded.units.get(name).filter(|unit| unit.is_template()) else { return true };
        if !used.contains(name) {
            let why = "a template without an instance: name the file `x@INSTANCE.service`, or use `replicas`";
            document.inexact(&unit.top, why);
        }
        false
    });
    loaded.units.retain(|_, unit| !unit.is_template());
    for unit in loaded.units.values_mut() {
        unit.remove_overridden(document);
    }
    Ok(())
}
