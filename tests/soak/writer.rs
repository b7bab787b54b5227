//! The program that the jobs run: it writes numbered lines and records how many it has written.
//!
//! The record is updated after each line. A killed writer has therefore written as many lines as its record says, or one
//! more, of which perhaps only a part.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::rng::Rng;

/// The longest payload of a line, in bytes.
const LONGEST: u64 = 40_000;

/// Writes until it is killed.
pub(crate) fn write(job: &str, folder: &Path) -> std::io::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let token = format!("{job}.{}.{}", std::process::id(), now.as_nanos());
    let record = File::create(folder.join("runs").join(&token))?;
    record.write_all_at(format!("{:020} {:020}\n", 0, 0).as_bytes(), 0)?;
    let flood = folder.join("flood");
    let mut rng = Rng::new(u64::try_from(now.as_nanos() & u128::from(u64::MAX)).unwrap_or(1));
    let mut written = [0_u64; 2];
    let mut flooding = false;
    let payload = vec![b'x'; usize::try_from(LONGEST).unwrap_or_default()];
    loop {
        if written.iter().sum::<u64>().is_multiple_of(256) || !flooding {
            flooding = fs::exists(&flood).unwrap_or(false);
        }
        if !flooding {
            std::thread::sleep(Duration::from_millis(20 + rng.below(60)));
        }
        let stream = usize::from(rng.one_in(8));
        let length = match rng.below(500) {
            0 => rng.below(LONGEST),
            1..50 => rng.below(2_000),
            _ => rng.below(80),
        };
        let payload = payload.get(..usize::try_from(length).unwrap_or_default()).unwrap_or_default();
        let mut line =
            format!("~{token}{} {} {length} ", ['o', 'e'][stream], written[stream] + 1).into_bytes();
        line.extend_from_slice(payload);
        line.push(b'\n');
        let done = match stream {
            0 => std::io::stdout().lock().write_all(&line),
            _ => std::io::stderr().lock().write_all(&line),
        };
        // The supervisor must not close the pipe while the job runs.
        if let Err(error) = done {
            fs::write(folder.join(format!("broken-{token}")), error.to_string())?;
            return Ok(());
        }
        written[stream] += 1;
        let [out, err] = written;
        record.write_all_at(format!("{out:020} {err:020}\n").as_bytes(), 0)?;
    }
}
