//! The host that a configuration is for, if that is another machine.

use std::net::Ipv4Addr;

use containerpilot_core::plan::Process;

use containerpilot_config::host::{FileError, Host, ProgramState};
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::template::Environment;

/// A host of which only the environment, the name and the addresses are known. Its programs, files and users are
/// assumed to exist.
#[derive(Debug)]
pub struct TargetHost<H> {
    /// Where those come from.
    known: H,
    /// Instead of its addresses.
    addresses: Option<Vec<HostAddress>>,
}

impl<H: Host> TargetHost<H> {
    /// A host with the environment, the name and the addresses of `known`.
    pub const fn new(known: H) -> Self {
        Self { known, addresses: None }
    }

    /// The same, with an interface of this name. If `known` has none, its address is one for documentation.
    #[must_use]
    pub fn with_interface(known: H, interface: &str) -> Self {
        let mut addresses = known.addresses().to_vec();
        if !addresses.iter().any(|one| one.interface == interface) {
            let ip = Ipv4Addr::new(192, 0, 2, 1).into();
            addresses.push(HostAddress { interface: interface.to_owned(), ip });
        }
        Self { known, addresses: Some(addresses) }
    }
}

impl<H: Host> Host for TargetHost<H> {
    fn environment(&self) -> &Environment {
        self.known.environment()
    }

    fn addresses(&self) -> &[HostAddress] {
        self.addresses.as_deref().unwrap_or_else(|| self.known.addresses())
    }

    fn hostname(&self) -> &str {
        self.known.hostname()
    }

    fn program(&self, _: &str) -> ProgramState {
        ProgramState::Runnable
    }

    fn is_directory(&self, _: &str) -> bool {
        true
    }

    fn can_switch_to(&self, _: &Process) -> bool {
        true
    }

    fn writable(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn readable(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, FileError> {
        match self.known.read_file(path) {
            Err(FileError::Missing) => Ok(Vec::new()),
            result => result,
        }
    }

    fn has_user(&self, _: &str) -> bool {
        true
    }

    fn has_group(&self, _: &str) -> bool {
        true
    }
}
