//! The service manager that started the supervisor, such as systemd or another supervisor (H11).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use containerpilot_config::template::Environment;
use containerpilot_core::effect::ManagerNotice;
use containerpilot_core::plan::Level;
use containerpilot_process::error_text::describe;

use crate::logs::Logs;

/// The variables of `sd_notify`. They are for the supervisor, and a job gets its own or none.
const VARIABLES: [&[u8]; 3] = [b"NOTIFY_SOCKET", b"WATCHDOG_USEC", b"WATCHDOG_PID"];

/// The service manager, if `NOTIFY_SOCKET` is set.
#[derive(Debug, Default)]
pub(crate) struct ServiceManager {
    /// The address in `NOTIFY_SOCKET`: a path, or an abstract name after `@`.
    address: Option<Vec<u8>>,
}

impl ServiceManager {
    /// Takes its variables out of the environment.
    pub(crate) fn take_from(environment: &mut Environment) -> Self {
        let [address, ..] = VARIABLES.map(|name| environment.remove(name));
        Self { address: address.filter(|address| matches!(address.first(), Some(b'/' | b'@'))) }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.address.is_some()
    }

    /// Sends it a notice. Never waits: a manager whose queue is full misses it.
    pub(crate) fn notify(&self, notice: ManagerNotice, logs: &Logs) {
        let Some(address) = &self.address else { return };
        match send(address, notice.message()) {
            Ok(()) => {
                logs.entry(Level::Debug, None, &format!("sent {} to the service manager", notice.message()));
            }
            Err(error) => {
                let message =
                    format!("cannot send {} to the service manager: {}", notice.message(), describe(&error));
                logs.entry(Level::Warn, None, &message);
            }
        }
    }
}

fn send(address: &[u8], message: &str) -> io::Result<()> {
    let address = match address.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(Path::new(OsStr::from_bytes(address)))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(message.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h11_the_variables_of_the_service_manager_are_taken_out() {
        let mut environment = Environment::new();
        for (name, value) in [("NOTIFY_SOCKET", "@x"), ("WATCHDOG_USEC", "1"), ("HOME", "/")] {
            environment.insert(name.into(), value.into());
        }
        assert!(ServiceManager::take_from(&mut environment).is_there());
        assert_eq!(environment.keys().collect::<Vec<_>>(), [b"HOME"]);
        assert!(!ServiceManager::take_from(&mut environment).is_there());
        environment.insert("NOTIFY_SOCKET".into(), "vsock:2:1".into());
        assert!(!ServiceManager::take_from(&mut environment).is_there(), "not supported");
    }
}
