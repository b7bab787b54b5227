//! Connections to a server, such as the Consul agent: name look-up, TCP or a unix socket, TLS.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use containerpilot_config::host::PATIENCE;
use containerpilot_core::plan::{Catalog, Plan, Tls};
use containerpilot_process::error_text::{describe, is_out_of_descriptors};
use containerpilot_process::sys;
use nix::errno::Errno;
use rustls::ClientConfig;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::resolve::{self, ResolveError};
use super::tls::{self, TlsError};

/// How long to wait for one address before the next is tried, if there are several.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a look-up is reused, so that many connections at once need only one.
const NAME_LIFETIME: Duration = Duration::from_secs(1);

/// A connection of any kind.
pub(crate) trait NetStream: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> NetStream for S {}

/// Why there is no connection.
#[derive(Debug, Error)]
pub(crate) enum ConnectError {
    #[error("`{0}` is not an address; use host:port")]
    InvalidAddress(String),
    #[error("{endpoint}: {}", describe(source))]
    Connect { endpoint: String, source: io::Error },
    #[error("{endpoint}: connection timed out")]
    Timeout { endpoint: String },
    /// All addresses of the host, in the order in which they were tried.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    EveryAddress(Vec<ConnectError>),
    #[error("{host} has no address")]
    NoAddress { host: String },
    #[error("cannot resolve {host}: {source}")]
    LookUp { host: String, source: ResolveError },
    #[error("cannot resolve {host}: {source}")]
    LookUpTask { host: String, source: JoinError },
    #[error("cannot resolve {host}: timed out")]
    LookUpTimeout { host: String },
    #[error(transparent)]
    TlsSettings(#[from] TlsError),
    #[error("the certificates could not be read in time: check their file system")]
    TlsFiles,
    #[error("TLS handshake failed: {}", tls::handshake_error(.0))]
    Handshake(#[source] io::Error),
    #[error("TLS handshake timed out")]
    HandshakeTimeout,
}

impl ConnectError {
    /// True if the supervisor had no descriptor for the connection.
    pub(crate) fn is_own(&self) -> bool {
        match self {
            Self::Connect { source, .. } => is_out_of_descriptors(source),
            Self::EveryAddress(errors) => errors.iter().any(Self::is_own),
            _ => false,
        }
    }
}

/// Opens connections to one server.
#[derive(Debug)]
pub(crate) struct Connector {
    address: Address,
    tls: Option<Tls>,
    /// Read from the files of `tls`. Cleared when a connection fails, because the files may have been renewed.
    tls_config: Mutex<Option<Arc<ClientConfig>>>,
    /// The files of `tls` are being read, also after a caller has timed out: there is one thread for it at a time.
    reading: tokio::sync::Mutex<Option<TlsReading>>,
    /// Locked during a look-up: there is only one at a time.
    look_up: tokio::sync::Mutex<LookUp>,
}

type TlsReading = oneshot::Receiver<Result<Arc<ClientConfig>, TlsError>>;

/// Reads the files on a thread, because their file system may not answer (P15).
fn read_tls_files(tls: Tls) -> TlsReading {
    let (sender, reading) = oneshot::channel();
    // Without a thread the channel is closed, and the reader gets an error.
    let _ = std::thread::Builder::new().name("tls".to_owned()).spawn(move || {
        let _ = sender.send(tls::client_config(&tls));
    });
    reading
}

/// Returns an error if a client certificate of the plan can never be used. Files that cannot be read in time are read
/// again when they are needed.
pub(crate) fn check_client_certificates(plan: &Plan) -> Result<(), TlsError> {
    let consul = match &plan.catalog {
        Catalog::Consul(consul) if consul.https => Some(&consul.tls),
        _ => None,
    };
    let collector = plan.otlp.as_ref().and_then(|otlp| otlp.tls.as_ref());
    for tls in consul.into_iter().chain(collector).filter(|tls| tls.client_cert.is_some()) {
        let (mut reading, deadline) = (read_tls_files(tls.clone()), Instant::now() + PATIENCE);
        let read = loop {
            match reading.try_recv() {
                Err(TryRecvError::Empty) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                read => break read,
            }
        };
        if let Ok(Err(error)) = read
            && error.is_about_client_key()
        {
            return Err(error);
        }
    }
    Ok(())
}

/// Where a server listens.
#[derive(Debug)]
pub(crate) enum Address {
    Network {
        host: String,
        port: u16,
    },
    Unix(PathBuf),
    /// No connection is possible: the address as it is written.
    Invalid(String),
}

/// The last look-up, and one that continues after its caller has timed out.
#[derive(Debug, Default)]
struct LookUp {
    addresses: Vec<IpAddr>,
    valid_until: Option<Instant>,
    running: Option<JoinHandle<Result<Vec<IpAddr>, ResolveError>>>,
}

impl Connector {
    /// A connector, with TLS if there are settings for it.
    pub(crate) fn new(address: Address, tls: Option<Tls>) -> Self {
        Self {
            address,
            tls,
            tls_config: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            look_up: tokio::sync::Mutex::default(),
        }
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self, deadline: Instant) -> Result<Pin<Box<dyn NetStream>>, ConnectError> {
        match &self.address {
            Address::Invalid(text) => Err(ConnectError::InvalidAddress(text.clone())),
            Address::Unix(path) => {
                let endpoint = path.display().to_string();
                let connected = sys::connect_unix(path).and_then(|stream| {
                    // What it attaches to an answer could keep this thread waiting when it is closed.
                    let _ = sys::refuse_descriptors(stream.as_fd());
                    UnixStream::from_std(stream)
                });
                match connected {
                    Ok(stream) => Ok(Box::pin(stream)),
                    Err(source) => Err(ConnectError::Connect { endpoint, source }),
                }
            }
            Address::Network { host, port } => {
                let stream = self.tcp(host, *port, deadline).await?;
                match &self.tls {
                    None => Ok(Box::pin(stream)),
                    Some(tls) => self.handshake(tls, host, stream, deadline).await,
                }
            }
        }
    }

    async fn tcp(&self, host: &str, port: u16, deadline: Instant) -> Result<TcpStream, ConnectError> {
        let addresses = self.addresses(host, deadline).await?;
        let mut errors = Vec::new();
        let several = addresses.len() > 1;
        for address in addresses {
            let address = SocketAddr::new(address, port);
            let endpoint = address.to_string();
            let until = if several { deadline.min(Instant::now() + ADDRESS_TIMEOUT) } else { deadline };
            errors.push(match timeout_at(until, TcpStream::connect(address)).await {
                // Without a listener the kernel may choose the same port as the local port: the socket is connected to
                // itself.
                Ok(Ok(stream)) if stream.peer_addr().ok() == stream.local_addr().ok() => {
                    ConnectError::Connect { endpoint, source: Errno::ECONNREFUSED.into() }
                }
                Ok(Ok(stream)) => {
                    // Small requests must not wait for acknowledgements. Without this option they are only slower.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(source)) => ConnectError::Connect { endpoint, source },
                Err(_) => ConnectError::Timeout { endpoint },
            });
        }
        // The address may have changed.
        self.look_up.lock().await.valid_until = None;
        Err(match errors.pop() {
            None => ConnectError::NoAddress { host: host.to_owned() },
            Some(only) if errors.is_empty() => only,
            Some(last) => {
                errors.push(last);
                ConnectError::EveryAddress(errors)
            }
        })
    }

    /// The addresses of the host.
    async fn addresses(&self, host: &str, deadline: Instant) -> Result<Vec<IpAddr>, ConnectError> {
        if let Some(addresses) = resolve::without_look_up(host) {
            return Ok(addresses);
        }
        let timed_out = || ConnectError::LookUpTimeout { host: host.to_owned() };
        let mut look_up = timeout_at(deadline, self.look_up.lock()).await.map_err(|_| timed_out())?;
        if look_up.valid_until.is_some_and(|until| until > Instant::now()) {
            return Ok(look_up.addresses.clone());
        }
        let name = host.to_owned();
        let task = async move { resolve::look_up(&name).await };
        let mut running = look_up.running.take().unwrap_or_else(|| tokio::spawn(task));
        match timeout_at(deadline, &mut running).await {
            Ok(Ok(Ok(found))) => {
                look_up.addresses = found;
                look_up.valid_until = Some(Instant::now() + NAME_LIFETIME);
                Ok(look_up.addresses.clone())
            }
            Ok(Ok(Err(source))) => Err(ConnectError::LookUp { host: host.to_owned(), source }),
            Ok(Err(source)) => Err(ConnectError::LookUpTask { host: host.to_owned(), source }),
            Err(_) => {
                look_up.running = Some(running);
                Err(timed_out())
            }
        }
    }

    async fn handshake(
        &self,
        tls: &Tls,
        host: &str,
        stream: TcpStream,
        deadline: Instant,
    ) -> Result<Pin<Box<dyn NetStream>>, ConnectError> {
        let name = tls::server_name(tls, host)?;
        let config = self.tls_config(tls, deadline).await?;
        let error = match timeout_at(deadline, TlsConnector::from(config).connect(name, stream)).await {
            Ok(Ok(stream)) => return Ok(Box::pin(stream)),
            Ok(Err(source)) => ConnectError::Handshake(source),
            Err(_) => ConnectError::HandshakeTimeout,
        };
        self.reload_tls();
        Err(error)
    }

    async fn tls_config(&self, tls: &Tls, deadline: Instant) -> Result<Arc<ClientConfig>, ConnectError> {
        if let Some(config) = &*self.cached() {
            return Ok(Arc::clone(config));
        }
        let mut reading =
            timeout_at(deadline, self.reading.lock()).await.map_err(|_| ConnectError::TlsFiles)?;
        // Another connection may have read them meanwhile.
        if let Some(config) = &*self.cached() {
            return Ok(Arc::clone(config));
        }
        let running = reading.get_or_insert_with(|| read_tls_files(tls.clone()));
        let answer = timeout_at(deadline, running).await.map_err(|_| ConnectError::TlsFiles)?;
        *reading = None;
        let config = answer.map_err(|_| ConnectError::TlsFiles)??;
        *self.cached() = Some(Arc::clone(&config));
        Ok(config)
    }

    fn cached(&self) -> MutexGuard<'_, Option<Arc<ClientConfig>>> {
        self.tls_config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the certificates again before the next connection.
    pub(crate) fn reload_tls(&self) {
        *self.cached() = None;
    }
}
