//! The socket to which a process reports about itself (H11): an abstract one, for which no file and no directory is
//! needed.
#![forbid(unsafe_code)]

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, UnixCredentials, bind,
    recvmsg, setsockopt, socket, sockopt,
};

/// The longest message, as for systemd. A longer one is dropped.
const MAX_MESSAGE: usize = 4096;

/// A datagram socket that accepts messages of one user and of root.
#[derive(Debug)]
pub struct NotifySocket {
    fd: OwnedFd,
    user: u32,
}

impl NotifySocket {
    /// Binds a socket for the processes of a user. Returns it with its abstract name, which other processes cannot
    /// guess.
    pub fn bind(user: u32) -> io::Result<(Self, String)> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(AddressFamily::Unix, SockType::Datagram, flags, None)?;
        setsockopt(&fd, sockopt::PassCred, &true)?;
        let random = || RandomState::new().build_hasher().finish();
        let name = format!("containerpilot/{:016x}{:016x}", random(), random());
        bind(fd.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
        Ok((Self { fd, user }, name))
    }

    /// Takes the next message. The kernel has closed the descriptors that came with it.
    pub fn receive(&self) -> io::Result<Received> {
        let mut buffer = [0; MAX_MESSAGE + 1];
        // There is room for the credentials only: the kernel closes descriptors for which there is none.
        let mut control = nix::cmsg_space!(UnixCredentials);
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<UnixAddr>(self.fd.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
        let sender = match message.cmsgs() {
            Ok(mut parts) => parts.find_map(|part| match part {
                ControlMessageOwned::ScmCredentials(sender) => Some(sender),
                _ => None,
            }),
            Err(Errno::ENOBUFS) => None,
            Err(errno) => return Err(errno.into()),
        };
        let length = message.bytes;
        let counts =
            sender.is_some_and(|sender| sender.pid() > 0 && (sender.uid() == self.user || sender.uid() == 0));
        let text = buffer.get(..length).filter(|text| text.len() <= MAX_MESSAGE);
        Ok(match text {
            _ if !counts => Received::Foreign,
            Some(text) => Received::Message(text.to_vec()),
            None => Received::TooLong,
        })
    }
}

/// What [`NotifySocket::receive`] has taken. Only a message counts.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Message(Vec<u8>),
    TooLong,
    /// Its sender is neither the job's user nor root, or is not in this PID namespace; or it is not known, because
    /// there were descriptors in it.
    Foreign,
}

impl AsFd for NotifySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    use nix::sys::socket::{ControlMessage, sendmsg};

    use super::*;

    fn sender(name: &str) -> UnixDatagram {
        let socket = UnixDatagram::unbound().unwrap();
        socket.connect_addr(&SocketAddr::from_abstract_name(name.as_bytes()).unwrap()).unwrap();
        socket
    }

    #[test]
    fn h11_messages_of_the_user_count() {
        let own = nix::unistd::geteuid().as_raw();
        let (socket, name) = NotifySocket::bind(own).unwrap();
        assert_eq!(socket.receive().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        sender(&name).send(b"READY=1").unwrap();
        assert_eq!(socket.receive().unwrap(), Received::Message(b"READY=1".to_vec()));
        sender(&name).send(&[b'x'; MAX_MESSAGE + 1]).unwrap();
        assert_eq!(socket.receive().unwrap(), Received::TooLong);
    }

    #[test]
    fn h11_messages_of_another_user_do_not_count() {
        let own = nix::unistd::geteuid().as_raw();
        if own == 0 {
            // Root may do everything anyway.
            return;
        }
        let (socket, name) = NotifySocket::bind(own + 1).unwrap();
        sender(&name).send(b"READY=1").unwrap();
        assert_eq!(socket.receive().unwrap(), Received::Foreign);
    }

    #[test]
    fn h11_descriptors_in_a_message_are_closed_and_it_does_not_count() {
        let (socket, name) = NotifySocket::bind(nix::unistd::geteuid().as_raw()).unwrap();
        let (reader, writer) = io::pipe().unwrap();
        let rights = [writer.as_raw_fd(); 200];
        let to = sender(&name);
        let parts = [IoSlice::new(b"FDSTORE=1\nREADY=1")];
        sendmsg::<()>(to.as_raw_fd(), &parts, &[ControlMessage::ScmRights(&rights)], MsgFlags::empty(), None)
            .unwrap();
        assert_eq!(socket.receive().unwrap(), Received::Foreign);
        // No copy of the write end is open: the pipe has ended.
        drop(writer);
        assert_eq!(io::Read::read(&mut &reader, &mut [0]).unwrap(), 0);
    }
}
