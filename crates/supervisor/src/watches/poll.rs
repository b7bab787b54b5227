//! One task per polled watch: `tcp`, `http` and `dns`.

use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::answer::MAX_VALUE_BYTES;
use containerpilot_core::input::{Answer, CheckError, Instance, WatchResult};
use containerpilot_core::inserted;
use containerpilot_core::plan::{DnsRecord, WatchKind};
use containerpilot_process::failpoints::{failpoint, guarded};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use super::Followed;
use crate::net::connect::{Address, Connector};
use crate::net::http_probe::ProbeClient;
use crate::net::resolve::{self, FoundRecord, RecordData};

/// Connections and look-ups at the same time. If there are more watches, they take turns.
pub(super) const CONCURRENT_POLLS: usize = 256;
/// The bounds of the time that one poll may take; in between it is the interval.
const TIMEOUT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// A name server that has not answered is asked again after this time: the interval may be hours, because the TTL
/// decides.
const DNS_RETRY: Duration = Duration::from_secs(5);
/// A shorter TTL counts as this.
const SHORTEST_TTL: Duration = Duration::from_secs(1);
/// Pause before a task starts over after a panic.
const PANIC_PAUSE: Duration = Duration::from_secs(1);

/// The task of a watch.
pub(super) struct PollTask {
    followed: Followed,
    slots: Arc<Semaphore>,
}

/// What is polled.
enum Target {
    Tcp(Box<Connector>),
    Http(Box<ProbeClient>),
    Dns { name: String, record: DnsRecord },
}

/// What a poll has found, and how long that is valid if not for the interval.
struct Polled {
    answer: WatchResult,
    ttl: Option<Duration>,
}

impl PollTask {
    pub(super) fn new(followed: Followed, slots: Arc<Semaphore>) -> Self {
        Self { followed, slots }
    }

    /// Polls until the task is aborted. Starts over after a panic.
    pub(super) async fn run(self) {
        let Some(target) = Target::new(&self.followed.watch.kind) else { return };
        while guarded(self.follow(&target)).await.is_err() {
            sleep(PANIC_PAUSE).await;
        }
    }

    async fn follow(&self, target: &Target) {
        let interval = self.followed.watch.interval;
        let timeout = interval.clamp(TIMEOUT[0], TIMEOUT[1]);
        let mut known = None;
        let mut due = Instant::now();
        loop {
            // The semaphore is never closed.
            let slot = self.slots.acquire().await;
            failpoint("poll");
            // In a box, so that a task that waits is small.
            let Polled { answer, ttl } = Box::pin(target.poll(timeout)).await;
            drop(slot);
            if known.as_ref() != Some(&answer) {
                known = Some(answer.clone());
                self.followed.tell(answer);
            }
            let pause = ttl.map_or(interval, |ttl| ttl.max(SHORTEST_TTL).min(interval));
            // Counted from the last time, so that watches with the same interval wake the thread together.
            due = (due + pause).max(Instant::now());
            sleep_until(due).await;
        }
    }
}

impl Target {
    fn new(kind: &WatchKind) -> Option<Self> {
        match kind {
            WatchKind::Tcp { host, port } => {
                let address = Address::Network { host: host.clone(), port: *port };
                Some(Self::Tcp(Box::new(Connector::new(address, None))))
            }
            WatchKind::Http(probe) => Some(Self::Http(Box::new(ProbeClient::new(probe)))),
            WatchKind::Dns { name, record } => Some(Self::Dns { name: name.clone(), record: *record }),
            _ => None,
        }
    }

    async fn poll(&self, within: Duration) -> Polled {
        let deadline = Instant::now() + within;
        match self {
            Self::Tcp(connector) => Polled::lasting(match connector.connect(deadline).await {
                Ok(_) => Ok(Answer::Up),
                Err(error) if error.is_own() => Err(error.to_string()),
                Err(error) => Ok(Answer::Down(error.to_string())),
            }),
            Self::Http(client) => Polled::lasting(match client.send(MAX_VALUE_BYTES + 1, within).await {
                Ok(body) if body.len() > MAX_VALUE_BYTES => {
                    Err("the body has more than 1 MiB; watch a smaller document".to_owned())
                }
                Ok(body) => Ok(Answer::Value(Arc::from(&*body))),
                Err(CheckError::Failed(why)) => Ok(Answer::Down(why)),
                Err(CheckError::NotRun(why)) => Err(why),
            }),
            Self::Dns { name, record } => match resolve::records(name, *record, deadline).await {
                Ok(records) => Polled {
                    // Without records there is no TTL.
                    ttl: records.iter().map(|found| Duration::from_secs(found.ttl.into())).min(),
                    answer: Ok(Answer::Instances(records.into_iter().map(instance).collect())),
                },
                Err(error) => Polled { answer: Err(error.to_string()), ttl: Some(DNS_RETRY) },
            },
        }
    }
}

impl Polled {
    /// Valid until the interval has passed.
    fn lasting(answer: WatchResult) -> Self {
        Self { answer, ttl: None }
    }
}

fn instance(found: FoundRecord) -> Instance {
    match found.data {
        RecordData::Address(address) => {
            let address = address.to_string();
            Instance { id: address.clone(), address, ..Instance::default() }
        }
        RecordData::Service { host, port, priority, weight } => Instance {
            id: format!("{host}:{port}"),
            meta: inserted([
                ("priority".to_owned(), priority.to_string()),
                ("weight".to_owned(), weight.to_string()),
            ]),
            address: host,
            port,
            ..Instance::default()
        },
    }
}
