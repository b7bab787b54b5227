//! Sockets that never block, and control sockets with a mode.
#![forbid(unsafe_code)]

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, SockaddrStorage, UnixAddr, bind, connect,
    getsockopt, listen, socket, sockopt,
};

use super::refuse_descriptors;

/// Starts a TCP connection without waiting. The socket becomes writable when it is connected or has failed.
pub fn begin_connection(to: SocketAddr) -> Result<TcpStream, Errno> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(family, SockType::Stream, flags, None)?;
    match connect(fd.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(fd)),
        Err(errno) => Err(errno),
    }
}

/// Writes to a socket without waiting, also if the shared open file is in blocking mode.
pub fn send_now(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    Ok(nix::sys::socket::send(fd.as_raw_fd(), bytes, flags)?)
}

/// Whether a stream socket has bytes to read. The end of the stream does not count.
pub fn has_unread_bytes(fd: RawFd) -> bool {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_PEEK;
    matches!(nix::sys::socket::recv(fd, &mut [0], flags), Ok(1..))
}

/// Listens on a path. The socket file never has a wider mode than `mode`.
pub fn listen_unix(path: &Path, mode: u32, backlog: i32) -> io::Result<UnixListener> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // Closing what a client attaches could take long. Its connections inherit this.
    let _ = refuse_descriptors(fd.as_fd());
    // `bind` creates the file with the mode of the socket, reduced by the umask.
    nix::sys::stat::fchmod(&fd, nix::sys::stat::Mode::from_bits_truncate(mode))?;
    bind(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    // The kernel caps the backlog at its own limit; nix refuses values above the constant it knows.
    listen(&fd, Backlog::new(backlog).unwrap_or(Backlog::MAXCONN))?;
    Ok(UnixListener::from(fd))
}

/// Connects to a path without waiting, not even for a listener with a full backlog.
pub fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(UnixStream::from(fd))
}

/// The pid of the peer.
pub fn peer_pid(stream: &UnixStream) -> Option<i32> {
    let credentials = getsockopt(stream, sockopt::PeerCredentials).ok()?;
    Some(credentials.pid()).filter(|pid| *pid > 0)
}
