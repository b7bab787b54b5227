//! Sockets, where the standard library would wait or leave them open to too many.
#![forbid(unsafe_code)]

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, SockaddrStorage, UnixAddr, bind, connect,
    getsockopt, listen, socket, sockopt,
};

/// A connection that is being made. It is ready to be written to when it stands or has failed.
pub(crate) fn begin_connection(to: SocketAddr) -> Result<TcpStream, Errno> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(family, SockType::Stream, flags, None)?;
    match connect(fd.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(fd)),
        Err(errno) => Err(errno),
    }
}

/// Writes to a socket without waiting, whatever the others who share it have set.
pub(crate) fn send_now(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    Ok(nix::sys::socket::send(fd.as_raw_fd(), bytes, flags)?)
}

/// A socket that listens at a path, with this mode and not a wider one from its first moment on.
pub(crate) fn listen_unix(path: &Path, mode: u32, backlog: i32) -> io::Result<UnixListener> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // The file that binding makes takes its mode from the socket, and loses what the process's mask takes away.
    nix::sys::stat::fchmod(&fd, nix::sys::stat::Mode::from_bits_truncate(mode))?;
    bind(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    // The kernel cuts it down to what it allows; what the C library thinks that is, it refuses to exceed.
    listen(&fd, Backlog::new(backlog).unwrap_or(Backlog::MAXCONN))?;
    Ok(UnixListener::from(fd))
}

/// Connects to a path without waiting, not even for a listener that is too busy to take anybody.
pub(crate) fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(UnixStream::from(fd))
}

/// The process at the other end of a connection.
pub(crate) fn peer_pid(stream: &UnixStream) -> Option<i32> {
    let credentials = getsockopt(stream, sockopt::PeerCredentials).ok()?;
    Some(credentials.pid()).filter(|pid| *pid > 0)
}
