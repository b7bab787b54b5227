//! Connectivity of the catalog: reports every change once and a lasting trouble from time to time, and no single
//! attempt (D5); tells what is known about a service in the catalog (D11).

use alloc::string::String;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::catalog::interruption::Interruption;
use crate::catalog::reconcile::Confirmation;
use crate::collections::SortedMap;
use crate::effect::DesiredService;
use crate::time::Time;

/// How often a trouble that lasts is reported again. Only a failed request reports it: there is no timer.
const REPORT_INTERVAL: Duration = Duration::from_mins(5);

/// The result of a request, as far as connectivity is concerned. A failed one has its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestResult<'a> {
    /// It was answered.
    Answered,
    /// The catalog is unreachable, slow or broken.
    Unavailable(&'a str),
    /// The catalog refused it.
    Refused(&'a str),
    /// It was not sent, because another supervisor holds the id of the service (D10).
    Held(&'a str),
}

/// A change to report, or a trouble to report again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectivityChange {
    /// The catalog has become unavailable.
    Unavailable,
    /// The catalog has been unavailable since this time.
    StillUnavailable(Time),
    /// The catalog is available again, for all clients.
    Available,
    /// The catalog answers all clients again, but refuses the requests of some.
    AnswersButRefuses,
    /// The catalog refuses the requests of this client.
    Refused,
    /// The catalog has refused the requests of this client since this time.
    StillRefused(Time),
    /// The catalog accepts the requests of this client again.
    Accepted,
    /// Another supervisor holds the id of this client's service.
    Held,
    /// Another supervisor has held the id of this client's service since this time.
    StillHeld(Time),
    /// The id of this client's service is its own.
    Released,
}

/// Failed requests of a client, none of which has succeeded since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// When the first of them failed.
    pub since: Time,
    /// The error of the last one.
    pub error: String,
}

/// What is known about a service in the catalog (D11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The state that the catalog has confirmed; `None` if it is not known.
    pub confirmed: Option<DesiredService>,
    /// Since when this is known, or not known. `None` if nothing was ever requested.
    pub since: Option<Time>,
    /// The error of the last request, unless a request has succeeded since.
    pub error: Option<String>,
    /// True if another supervisor holds the id of the service (D10).
    pub is_held: bool,
}

/// The connectivity of the catalog, as its clients (services and watches) see it.
///
/// The catalog counts as unavailable while it is unavailable for one client. A client whose connection still works does
/// not contradict another one, so the log does not alternate between the two.
#[derive(Clone, Debug)]
pub struct Connectivity<K> {
    /// True if a request was ever answered.
    answered: bool,
    /// When the catalog was last reported as unavailable; `None` if it was reported as available since.
    reported_unavailable: Option<Time>,
    unavailable: SortedMap<K, Trouble>,
    /// When the last outage began, and when the last request failed in it.
    outage: Option<(Time, Time)>,
    /// When the catalog has first answered a client in this outage.
    answered_at: Option<Time>,
    /// With the time of the last report.
    refused: SortedMap<K, (Trouble, Time)>,
    /// The clients whose service id another supervisor holds, with the time of the last report. The catalog is
    /// available for them.
    held: SortedMap<K, (Trouble, Time)>,
}

impl<K> Default for Connectivity<K> {
    fn default() -> Self {
        Self {
            answered: false,
            reported_unavailable: None,
            unavailable: SortedMap::new(),
            outage: None,
            answered_at: None,
            refused: SortedMap::new(),
            held: SortedMap::new(),
        }
    }
}

impl<K: Ord> Connectivity<K> {
    /// Records the result of a client's request. Returns what to report, in order.
    pub fn record(
        &mut self,
        now: Time,
        client: K,
        result: RequestResult<'_>,
    ) -> [Option<ConnectivityChange>; 2] {
        let own = match result {
            RequestResult::Answered => {
                self.answered = true;
                self.unavailable.remove(&client);
                if !self.unavailable.is_empty() {
                    self.answered_at.get_or_insert(now);
                }
                let released = self.held.remove(&client).map(|_| ConnectivityChange::Released);
                self.refused.remove(&client).map(|_| ConnectivityChange::Accepted).or(released)
            }
            RequestResult::Unavailable(error) => {
                let before = self.outage.filter(|_| !self.unavailable.is_empty());
                self.outage = Some((before.map_or(now, |(began, _)| began), now));
                self.answered_at = self.answered_at.filter(|_| before.is_some());
                // It stays refused until a request is accepted.
                let trouble = self.unavailable.get_or_insert(client, Trouble::new(now));
                trouble.error = error.into();
                None
            }
            RequestResult::Refused(error) => {
                self.unavailable.remove(&client);
                let report = report(&mut self.refused, client, now, error);
                report
                    .map(|since| since.map_or(ConnectivityChange::Refused, ConnectivityChange::StillRefused))
            }
            RequestResult::Held(error) => {
                self.answered = true;
                self.unavailable.remove(&client);
                self.refused.remove(&client);
                let report = report(&mut self.held, client, now, error);
                report.map(|since| since.map_or(ConnectivityChange::Held, ConnectivityChange::StillHeld))
            }
        };
        let failed = matches!(result, RequestResult::Unavailable(_));
        let common = match (&mut self.reported_unavailable, first(&self.unavailable)) {
            (reported @ None, Some(_)) => {
                *reported = Some(now);
                Some(ConnectivityChange::Unavailable)
            }
            (reported @ Some(_), None) => {
                *reported = None;
                Some(if self.refused.is_empty() {
                    ConnectivityChange::Available
                } else {
                    ConnectivityChange::AnswersButRefuses
                })
            }
            (Some(reported), Some(trouble)) if failed => {
                is_due(reported, now).then_some(ConnectivityChange::StillUnavailable(trouble.since))
            }
            _ => None,
        };
        [common, own]
    }

    /// Removes a client that sends no more requests. This reports nothing, even if it was the last client for which the
    /// catalog was unavailable; the next result does.
    pub fn forget(&mut self, client: &K) {
        self.refused.remove(client);
        self.held.remove(client);
        self.unavailable.remove(client);
    }

    /// The problem to report: an unavailable catalog, or else the request that it has refused for the longest time.
    #[must_use]
    pub fn trouble(&self) -> Option<&Trouble> {
        let refused = self.refused.values().map(|(trouble, _)| trouble);
        first(&self.unavailable).or_else(|| refused.min_by_key(|trouble| trouble.since))
    }

    /// Why a client gets no answers: its own trouble, or that the catalog is unavailable for another client.
    #[must_use]
    pub fn trouble_of(&self, client: &K) -> Option<&Trouble> {
        let own = self.unavailable.get(client).or_else(|| self.objection(client));
        own.or_else(|| first(&self.unavailable))
    }

    /// Returns true if the last request of each client was answered and accepted; `None` before the first result.
    #[must_use]
    pub fn is_up(&self) -> Option<bool> {
        match self.trouble() {
            Some(_) => Some(false),
            None => self.answered.then_some(true),
        }
    }

    /// The clients whose requests are refused.
    pub fn refused(&self) -> impl ExactSizeIterator<Item = &K> {
        self.refused.keys()
    }

    /// The last time at which the catalog was unavailable; `None` if it never was.
    #[must_use]
    pub fn interruption(&self) -> Option<Interruption> {
        let (_, last_failure) = self.outage?;
        let lasting = first(&self.unavailable).map(|trouble| trouble.since);
        Some(Interruption {
            at: lasting.unwrap_or(last_failure),
            is_over: self.reported_unavailable.is_none() && lasting.is_none(),
            answered_at: self.answered_at,
        })
    }

    /// What is known about the service of a client. A confirmation that has expired, or is older than a trouble of the
    /// catalog, does not count. What is unknown is unknown since the first of these.
    #[must_use]
    pub fn known(&self, now: Time, client: &K, confirmation: Option<Confirmation>) -> Known {
        let at = confirmation.map(|known| known.at);
        let is_newer = |trouble: &&Trouble| at.is_none_or(|at| at <= trouble.since);
        let own = [self.unavailable.get(client), self.objection(client)];
        let is_held = self.held.contains_key(client);
        let common = first(&self.unavailable).filter(is_newer);
        let troubles = || own.into_iter().chain([common]).flatten();
        let expired = confirmation.and_then(|known| known.expires).filter(|expires| *expires <= now);
        if let Some(trouble) = troubles().next() {
            let since = troubles().map(|trouble| trouble.since).chain(expired).min();
            return Known { confirmed: None, since, error: Some(trouble.error.clone()), is_held };
        }
        let lost_at = self.interruption().map(|interruption| interruption.at);
        match confirmation {
            Some(known) if known.state != DesiredService::Absent && Some(known.at) <= lost_at => {
                let began = self.outage.map(|(began, _)| began).filter(|began| known.at <= *began);
                Known { confirmed: None, since: began.or(lost_at), ..Known::default() }
            }
            Some(_) if expired.is_some() => Known {
                confirmed: None,
                since: expired,
                error: Some("no heartbeat was sent within its TTL".into()),
                is_held,
            },
            Some(known) => {
                Known { confirmed: Some(known.state), since: Some(known.since), ..Known::default() }
            }
            None => Known::default(),
        }
    }
}

impl<K: Ord> Connectivity<K> {
    /// Why the requests of a client are not carried out, although the catalog answers.
    fn objection(&self, client: &K) -> Option<&Trouble> {
        self.refused.get(client).or_else(|| self.held.get(client)).map(|(trouble, _)| trouble)
    }
}

impl Trouble {
    const fn new(since: Time) -> Self {
        Self { since, error: String::new() }
    }
}

/// Records the trouble of a client. Returns `Some` if it must be reported: `None` if it is new, otherwise since when it
/// lasts.
fn report<K: Ord>(
    troubles: &mut SortedMap<K, (Trouble, Time)>,
    client: K,
    now: Time,
    error: &str,
) -> Option<Option<Time>> {
    let known = troubles.contains_key(&client);
    let (trouble, reported) = troubles.get_or_insert(client, (Trouble::new(now), now));
    trouble.error = error.into();
    if !known {
        return Some(None);
    }
    is_due(reported, now).then_some(Some(trouble.since))
}

/// The trouble that has lasted longest.
fn first<K>(troubles: &SortedMap<K, Trouble>) -> Option<&Trouble> {
    troubles.values().min_by_key(|trouble| trouble.since)
}

/// Returns true if a trouble must be reported again, and notes that it is.
fn is_due(reported: &mut Time, now: Time) -> bool {
    let due = now.since(*reported) >= REPORT_INTERVAL;
    if due {
        *reported = now;
    }
    due
}
