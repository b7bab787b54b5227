//! A digest of what a core decides, without the texts in it: a replay that decides something else is noticed (B4).

use std::hash::{Hash, Hasher};

use containerpilot_core::Effect;
use containerpilot_core::log_entry::LogEntry;
use containerpilot_core::request::Reply;

use crate::format::DIGEST_EVERY;

/// The digest of the effects since the last one that was written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Digest {
    hash: Fnv,
    /// How many steps it covers.
    steps: u32,
    /// Whether there is an entry of the log among the effects.
    has_entry: bool,
}

impl Digest {
    /// A step has these effects.
    pub(crate) fn add(&mut self, effects: &[Effect]) {
        self.steps += 1;
        for effect in effects {
            self.has_entry |= matches!(effect, Effect::Log(_));
            hash(effect, &mut self.hash);
        }
    }

    /// The digest, if it is to be written now: what people read is always covered, and a check that passes is covered
    /// with others. It is never 0.
    pub(crate) fn take(&mut self) -> Option<u16> {
        if !self.has_entry && self.steps < DIGEST_EVERY {
            return None;
        }
        let Fnv(hash) = std::mem::take(self).hash;
        let [.., third, second, first, last] = hash.to_be_bytes();
        Some((u16::from_be_bytes([first, last]) ^ u16::from_be_bytes([third, second])).max(1))
    }
}

/// The kind of an effect, and what it is about.
fn hash(effect: &Effect, out: &mut Fnv) {
    std::mem::discriminant(effect).hash(out);
    match effect {
        Effect::Spawn { job, run, environment: _ } => (job, run).hash(out),
        Effect::InspectStart { run }
        | Effect::CancelStart { run }
        | Effect::KillOrphans { run }
        | Effect::Abandon { run } => run.hash(out),
        Effect::Kill { run, signal, scope: _, reason: _ } => (run, signal).hash(out),
        Effect::RunCheck { job, check, run, environment: _ } => (job, check, run).hash(out),
        Effect::RunDrain { job, run, environment: _ } => (job, run).hash(out),
        Effect::CancelCheck { run } => run.hash(out),
        Effect::RenderFile { file, render, data: _, variables: _ } => (file, render).hash(out),
        Effect::TestFile { file, render, run, environment: _ } => (file, render, run).hash(out),
        Effect::InstallFile { render } | Effect::DiscardFile { render } => render.hash(out),
        Effect::Advertise { job, desired } => (job, std::mem::discriminant(desired)).hash(out),
        Effect::Heartbeat { job } => job.hash(out),
        Effect::ReleaseLock { lock } => lock.hash(out),
        Effect::NotifyManager(notice) => notice.message().hash(out),
        Effect::Reply { id, reply } => (id, std::mem::discriminant::<Reply>(reply)).hash(out),
        Effect::PlanReplaced { plan, moves: _ } => plan.jobs.len().hash(out),
        Effect::Reload => {}
        Effect::Log(entry) => hash_entry(entry, out),
        Effect::Exit(exit) => {
            exit.code.hash(out);
            hash_entry(&exit.entry, out);
        }
    }
}

fn hash_entry(entry: &LogEntry, out: &mut Fnv) {
    (entry.level as u8, entry.job, entry.fields.event.name(), entry.fields.pid, entry.fields.code).hash(out);
}

/// FNV-1a, which is the same in every build.
#[derive(Clone, Copy, Debug)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
