//! Who has registered a service id: this supervisor, a crashed predecessor, or another supervisor that is alive (D10).
//!
//! Every registration carries the mark of its supervisor, a random value, in its metadata. Before a service is
//! registered, its id is looked up, and again whenever a TTL has passed since the last look-up.
//!
//! ```text
//! the catalog has under the id                          then
//! ---------------------------------------------------   ------------------------------------------------------------
//! nothing, or a service without a mark                   Free: it is registered
//! the own mark                                           Free
//! another mark, TTL expired or no TTL check              Free: that supervisor has crashed
//! another mark, same address and port, first look-up     Free: the predecessor; a living one would have the port
//! another mark, critical, to be registered for the       Free: a working service replaces one that is down
//!   first time or as passing
//! another mark, to be registered, at the agent of this   Free: the predecessor, before this host got its address
//!   host, with an address that this host does not have
//! another mark otherwise                                 Held: nothing is sent, and it is tried again later
//! ```

use alloc::format;
use alloc::string::String;
use core::net::IpAddr;
use core::time::Duration;

use crate::catalog::reconcile::CatalogRequest;
use crate::plan::{Service, Status};
use crate::time::Time;

/// The key of the mark in the metadata of a service.
pub const MARK_KEY: &str = "containerpilot-instance";

/// What the catalog has under the id of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The mark of the supervisor that has registered it. `None` if that was another program.
    pub mark: Option<String>,
    /// The registered address.
    pub address: String,
    /// The registered port.
    pub port: u16,
    /// True if its TTL has expired, or if it has no TTL check.
    pub is_expired: bool,
    /// True if its check is critical, for any reason.
    pub is_critical: bool,
    /// The name of the agent's node, which is that of its host unless the agent was given another one.
    pub node: String,
}

/// The host of this supervisor.
#[derive(Clone, Copy)]
pub struct SupervisorHost<'a> {
    /// The host name; empty if it is unknown.
    pub name: &'a str,
    /// Returns true if a network interface has this address.
    pub has_address: &'a dyn Fn(IpAddr) -> bool,
}

impl SupervisorHost<'_> {
    /// Returns true if the holder is registered at the agent of this host, with an address that this host no longer
    /// has.
    fn had_address_of(&self, holder: &Holder, service: &Service) -> bool {
        let is_here = !self.name.is_empty() && holder.node == self.name;
        let address = holder.address.parse().ok().filter(|_| is_here);
        address.is_some_and(|address| address != service.address && !(self.has_address)(address))
    }
}

/// Whether this supervisor may use an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It may.
    Free,
    /// Another supervisor uses it: its mark and address, in words.
    Held(String),
}

/// What a supervisor knows about the id of one of its services.
#[derive(Clone, Debug)]
pub struct Ownership {
    mark: String,
    looked_up: Option<Time>,
}

impl Ownership {
    /// An id that was never looked up. `mark` is that of this supervisor.
    #[must_use]
    pub const fn new(mark: String) -> Self {
        Self { mark, looked_up: None }
    }

    /// The mark of this supervisor.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Returns true if the id must be looked up before a request is sent. Others can only take it over after its TTL
    /// has expired.
    #[must_use]
    pub fn must_look_up(&self, now: Time, request: CatalogRequest, ttl: Duration) -> bool {
        match request {
            CatalogRequest::Register(_) => true,
            CatalogRequest::Update(_) | CatalogRequest::Deregister => {
                self.looked_up.is_none_or(|at| now.since(at) >= ttl)
            }
        }
    }

    /// Decides by the result of a look-up whether a request may be sent.
    pub fn claim(
        &mut self,
        now: Time,
        service: &Service,
        request: CatalogRequest,
        found: Option<&Holder>,
        host: SupervisorHost<'_>,
    ) -> Claim {
        let is_first = self.looked_up.replace(now).is_none();
        let Some((holder, mark)) = found.and_then(|holder| Some((holder, holder.mark.as_ref()?))) else {
            return Claim::Free;
        };
        let Holder { address, port, is_expired, is_critical, .. } = holder;
        let is_same_place = *port == service.port && address.parse() == Ok(service.address);
        let is_replaced = match request {
            CatalogRequest::Register(status) => {
                let is_better = *is_critical && (is_first || status == Status::Passing);
                is_better || host.had_address_of(holder, service)
            }
            CatalogRequest::Update(_) | CatalogRequest::Deregister => false,
        };
        if *mark == self.mark || *is_expired || is_replaced || (is_first && is_same_place) {
            Claim::Free
        } else {
            Claim::Held(format!("instance {mark}, at {address} port {port}"))
        }
    }
}
