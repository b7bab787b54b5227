//! The socket to which a process reports about itself (H11): an abstract one, for which no file and no directory is
//! needed.
#![forbid(unsafe_code)]

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, Shutdown, SockFlag, SockType, UnixAddr, UnixCredentials,
    bind, recv, recvmsg, setsockopt, shutdown, socket, sockopt,
};

use super::refuse_descriptors;

/// The longest message, as for systemd. A longer one is dropped.
const MAX_MESSAGE: usize = 4096;

/// A datagram socket that accepts messages of one user and of root.
///
/// Who closes a descriptor may have to wait: for the other side of a connection, or for a file system. A sender can
/// attach such a descriptor, and the receiver closes it, if it is the last one to have it. From Linux 6.16 on, messages
/// with descriptors are refused. Otherwise a thread drops them, and meanwhile nothing else is received.
#[derive(Debug)]
pub struct NotifySocket {
    fd: Arc<OwnedFd>,
    user: u32,
    /// Whether messages with descriptors can arrive.
    takes_descriptors: bool,
    /// Drops a message with descriptors.
    dropping: Option<JoinHandle<()>>,
}

impl NotifySocket {
    /// Binds a socket for the processes of a user. Returns it with its abstract name, which other processes cannot
    /// guess.
    pub fn bind(user: u32) -> io::Result<(Self, String)> {
        Self::bind_with(user, refuse_descriptors)
    }

    fn bind_with(
        user: u32,
        refuse_descriptors: fn(BorrowedFd<'_>) -> Result<(), Errno>,
    ) -> io::Result<(Self, String)> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(AddressFamily::Unix, SockType::Datagram, flags, None)?;
        setsockopt(&fd, sockopt::PassCred, &true)?;
        let takes_descriptors = refuse_descriptors(fd.as_fd()).is_err();
        let random = || RandomState::new().build_hasher().finish();
        let name = format!("containerpilot/{:016x}{:016x}", random(), random());
        bind(fd.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
        Ok((Self { fd: Arc::new(fd), user, takes_descriptors, dropping: None }, name))
    }

    /// Takes the next message.
    pub fn receive(&mut self) -> io::Result<Received> {
        if self.takes_descriptors {
            if self.dropping.as_ref().is_some_and(|thread| !thread.is_finished()) {
                return Ok(Received::Dropping);
            }
            self.dropping = None;
            if peek(&self.fd)? {
                // Without a thread, it is tried again later.
                self.dropping = drop_messages(&self.fd, 1).ok();
                return Ok(Received::Dropping);
            }
        }
        let mut buffer = [0; MAX_MESSAGE + 1];
        let mut control = nix::cmsg_space!(UnixCredentials);
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<UnixAddr>(self.fd.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
        let sender = match message.cmsgs() {
            Ok(mut parts) => parts.find_map(|part| match part {
                ControlMessageOwned::ScmCredentials(sender) => Some(sender),
                _ => None,
            }),
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

impl Drop for NotifySocket {
    fn drop(&mut self) {
        if !self.takes_descriptors {
            return;
        }
        // From here on nothing arrives.
        let _ = shutdown(self.fd.as_raw_fd(), Shutdown::Read);
        let is_empty = peek(&self.fd) == Err(Errno::EAGAIN);
        if !is_empty && drop_messages(&self.fd, usize::MAX).is_err() {
            // A descriptor is lost, rather than the time of the event loop.
            std::mem::forget(Arc::clone(&self.fd));
        }
    }
}

/// Looks at the next message, without taking it. Returns whether there are descriptors in it.
fn peek(socket: &OwnedFd) -> Result<bool, Errno> {
    // There is room for the credentials only.
    let mut control = nix::cmsg_space!(UnixCredentials);
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_PEEK;
    let message = recvmsg::<UnixAddr>(socket.as_raw_fd(), &mut [], Some(&mut control), flags)?;
    Ok(message.flags.contains(MsgFlags::MSG_CTRUNC))
}

/// Starts a thread that drops the next messages.
fn drop_messages(socket: &Arc<OwnedFd>, most: usize) -> io::Result<JoinHandle<()>> {
    let socket = Arc::clone(socket);
    let thread = std::thread::Builder::new().name("notices".to_owned()).stack_size(128 * 1024);
    thread.spawn(move || {
        let take = |_| recv(socket.as_raw_fd(), &mut [], MsgFlags::MSG_DONTWAIT).is_ok();
        let _ = (0..most).all(take);
    })
}

/// What [`NotifySocket::receive`] has taken. Only a message counts.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Message(Vec<u8>),
    TooLong,
    /// Its sender is neither the job's user nor root, or is not in this PID namespace.
    Foreign,
    /// A message with descriptors, which does not count, is being dropped. There is nothing to receive until then.
    Dropping,
}

impl AsFd for NotifySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::RawFd;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    use std::time::{Duration, Instant};

    use nix::libc;
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
        let (mut socket, name) = NotifySocket::bind(own).unwrap();
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
        let (mut socket, name) = NotifySocket::bind(own + 1).unwrap();
        sender(&name).send(b"READY=1").unwrap();
        assert_eq!(socket.receive().unwrap(), Received::Foreign);
    }

    /// A socket as it is before Linux 6.16.
    fn old_kernel() -> (NotifySocket, String) {
        NotifySocket::bind_with(nix::unistd::geteuid().as_raw(), |_| Err(Errno::ENOPROTOOPT)).unwrap()
    }

    fn send_descriptors(name: &str, text: &[u8], rights: &[RawFd]) -> Result<usize, Errno> {
        let (to, parts) = (sender(name), [IoSlice::new(text)]);
        sendmsg::<()>(to.as_raw_fd(), &parts, &[ControlMessage::ScmRights(rights)], MsgFlags::empty(), None)
    }

    /// A connection that takes 100 s to close, unless its other end is closed.
    fn slow_to_close() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        while io::Write::write(&mut near, &[0; 65_536]).is_ok() {}
        near.set_nonblocking(false).unwrap();
        setsockopt(&near, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 100 }).unwrap();
        (near, far)
    }

    fn receive_until_dropped(socket: &mut NotifySocket) -> io::Result<Received> {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < Duration::from_secs(30), "it is not dropped");
            match socket.receive() {
                Ok(Received::Dropping) => std::thread::yield_now(),
                other => return other,
            }
        }
    }

    #[test]
    fn h11_descriptors_in_a_message_are_closed_and_it_does_not_count() {
        let (mut socket, name) = old_kernel();
        let (reader, writer) = io::pipe().unwrap();
        send_descriptors(&name, b"FDSTORE=1\nREADY=1", &[writer.as_raw_fd(); 200]).unwrap();
        sender(&name).send(b"STATUS=1").unwrap();
        assert_eq!(receive_until_dropped(&mut socket).unwrap(), Received::Message(b"STATUS=1".to_vec()));
        // No copy of the write end is open: the pipe has ended.
        drop(writer);
        assert_eq!(io::Read::read(&mut &reader, &mut [0]).unwrap(), 0);
    }

    #[test]
    fn h11_no_descriptor_keeps_the_receiver_waiting() {
        let (mut socket, name) = old_kernel();
        let (near, far) = slow_to_close();
        // The text may be empty.
        send_descriptors(&name, b"", &[near.as_raw_fd()]).unwrap();
        drop(near);
        sender(&name).send(b"STATUS=1").unwrap();
        let began = Instant::now();
        assert_eq!(socket.receive().unwrap(), Received::Dropping);
        assert_eq!(socket.receive().unwrap(), Received::Dropping);
        assert!(began.elapsed() < Duration::from_secs(30), "it was closed here");
        drop(far);
        assert_eq!(receive_until_dropped(&mut socket).unwrap(), Received::Message(b"STATUS=1".to_vec()));
        // Those that are left at the end.
        let (near, far) = slow_to_close();
        send_descriptors(&name, b"", &[near.as_raw_fd()]).unwrap();
        drop(near);
        drop(socket);
        assert!(began.elapsed() < Duration::from_secs(60), "it was closed here");
        drop(far);
    }

    #[test]
    fn h11_the_kernel_refuses_descriptors_if_it_can() {
        let (socket, name) = NotifySocket::bind(nix::unistd::geteuid().as_raw()).unwrap();
        if refuse_descriptors(socket.as_fd()).is_err() {
            containerpilot_test_support::skip("needs Linux 6.16");
            return;
        }
        let (reader, _writer) = io::pipe().unwrap();
        assert_eq!(send_descriptors(&name, b"READY=1", &[reader.as_raw_fd()]), Err(Errno::EPERM));
        sender(&name).send(b"READY=1").unwrap();
    }
}
