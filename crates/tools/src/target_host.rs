//! The host that a configuration is for, if that is not this machine.

use std::net::Ipv4Addr;

use containerpilot_config::host::{FileError, Host, ProgramState};
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::template::Environment;
use containerpilot_core::plan::Process;
use containerpilot_load::host::ThisHost;

/// A host of which only the environment, the name and the addresses are known. Its programs, files and users are
/// assumed to exist.
pub(crate) struct TargetHost {
    here: ThisHost,
    /// Instead of the addresses of this machine.
    addresses: Option<Vec<HostAddress>>,
}

impl TargetHost {
    pub(crate) fn new(here: ThisHost) -> Self {
        Self { here, addresses: None }
    }

    /// A host that has an interface of this name. If this machine has none, its address is one for documentation.
    pub(crate) fn with_interface(here: ThisHost, interface: &str) -> Self {
        let mut addresses = here.addresses().to_vec();
        if !addresses.iter().any(|one| one.interface == interface) {
            let ip = Ipv4Addr::new(192, 0, 2, 1).into();
            addresses.push(HostAddress { interface: interface.to_owned(), ip });
        }
        Self { here, addresses: Some(addresses) }
    }
}

impl Host for TargetHost {
    fn environment(&self) -> &Environment {
        self.here.environment()
    }

    fn addresses(&self) -> &[HostAddress] {
        self.addresses.as_deref().unwrap_or_else(|| self.here.addresses())
    }

    fn hostname(&self) -> &str {
        self.here.hostname()
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
        match self.here.read_file(path) {
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
