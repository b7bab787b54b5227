//! Getting a connection to the agent: looking its name up, TCP or a unix socket, encryption.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use containerpilot_core::plan::{Consul, ConsulAddress, Tls};
use rustls::ClientConfig;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Mutex as Turn;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::tls;
use crate::net::resolve;
use crate::net::wire::Wire;

/// How long one address may take to answer before the next is tried, where there are several.
const ONE_ADDRESS: Duration = Duration::from_secs(1);

/// Where and how the agent is reached.
#[derive(Debug)]
pub(super) struct Dialer {
    place: Place,
    tls: Option<Tls>,
    /// What was made of the encryption's files, until a connection fails: they may have been renewed.
    ready_tls: Mutex<Option<Arc<ClientConfig>>>,
    /// A name is looked up by one at a time, however many want to know it.
    look_up: Turn<LookUp>,
}

#[derive(Debug)]
enum Place {
    Network {
        host: String,
        port: u16,
    },
    Unix(PathBuf),
    /// It cannot be one.
    Nowhere(String),
}

/// The last look-up of the host's name, and one that goes on although nobody waits for it any more.
#[derive(Debug, Default)]
struct LookUp {
    known: Vec<IpAddr>,
    until: Option<Instant>,
    going_on: Option<JoinHandle<Result<Vec<IpAddr>, String>>>,
}

/// For how long an answer counts: so that many connections at a time are one look-up.
const NAME_COUNTS: Duration = Duration::from_secs(1);

impl Dialer {
    pub(super) fn new(consul: &Consul) -> Self {
        let place = match &consul.address {
            ConsulAddress::Unix(path) => Place::Unix(path.into()),
            ConsulAddress::Network(text) => match consul.address.network_parts(consul.https) {
                Some(parts) => Place::Network { host: parts.host.to_owned(), port: parts.port },
                None => Place::Nowhere(format!("`{text}` is no address; it should be host:port")),
            },
        };
        Self {
            place,
            tls: consul.https.then(|| consul.tls.clone()),
            ready_tls: Mutex::default(),
            look_up: Turn::default(),
        }
    }

    /// A new connection; or why there is none, in words.
    pub(super) async fn connect(&self, deadline: Instant) -> Result<Wire, String> {
        match &self.place {
            Place::Nowhere(why) => Err(why.clone()),
            Place::Unix(path) => match timeout_at(deadline, UnixStream::connect(path)).await {
                Ok(Ok(stream)) => Ok(Wire::new(stream)),
                Ok(Err(error)) => Err(format!("{}: {error}", path.display())),
                Err(_) => Err(format!("{}: no connection in time", path.display())),
            },
            Place::Network { host, port } => {
                let stream = self.tcp(host, *port, deadline).await?;
                match &self.tls {
                    None => Ok(Wire::new(stream)),
                    Some(tls) => self.encrypted(tls, host, stream, deadline).await,
                }
            }
        }
    }

    async fn tcp(&self, host: &str, port: u16, deadline: Instant) -> Result<TcpStream, String> {
        let addresses = self.addresses(host, deadline).await?;
        let mut why = format!("{host} has no address");
        let several = addresses.len() > 1;
        for address in addresses {
            let address = SocketAddr::new(address, port);
            let until = if several { deadline.min(Instant::now() + ONE_ADDRESS) } else { deadline };
            match timeout_at(until, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Without it small requests wait for acknowledgements; if it fails they do, and that is all.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => why = format!("{address}: {error}"),
                Err(_) => why = format!("{address}: no connection in time"),
            }
        }
        // Perhaps it has moved.
        self.look_up.lock().await.until = None;
        Err(why)
    }

    /// The addresses of the host. A look-up may block, so it has a thread of its own, and there is only ever one.
    async fn addresses(&self, host: &str, deadline: Instant) -> Result<Vec<IpAddr>, String> {
        if let Some(addresses) = resolve::known(host) {
            return Ok(addresses);
        }
        let slow = || format!("the name {host} could not be looked up in time");
        let mut look_up = timeout_at(deadline, self.look_up.lock()).await.map_err(|_| slow())?;
        if look_up.until.is_some_and(|until| until > Instant::now()) {
            return Ok(look_up.known.clone());
        }
        let name = host.to_owned();
        let blocking = move || resolve::look_up(&name);
        let mut going_on = look_up.going_on.take().unwrap_or_else(|| tokio::task::spawn_blocking(blocking));
        match timeout_at(deadline, &mut going_on).await {
            Ok(Ok(Ok(found))) => {
                look_up.known = found;
                look_up.until = Some(Instant::now() + NAME_COUNTS);
                Ok(look_up.known.clone())
            }
            Ok(Ok(Err(why))) => Err(format!("the name {host} cannot be looked up: {why}")),
            Ok(Err(error)) => Err(format!("the name {host} cannot be looked up: {error}")),
            Err(_) => {
                look_up.going_on = Some(going_on);
                Err(slow())
            }
        }
    }

    async fn encrypted(
        &self,
        tls: &Tls,
        host: &str,
        stream: TcpStream,
        deadline: Instant,
    ) -> Result<Wire, String> {
        let name = tls::server_name(tls, host)?;
        let config = self.tls_configuration(tls)?;
        let why = match timeout_at(deadline, TlsConnector::from(config).connect(name, stream)).await {
            Ok(Ok(stream)) => return Ok(Wire::new(stream)),
            Ok(Err(error)) => format!("no encrypted connection: {error}"),
            Err(_) => "no encrypted connection in time".to_owned(),
        };
        self.renew();
        Err(why)
    }

    fn tls_configuration(&self, tls: &Tls) -> Result<Arc<ClientConfig>, String> {
        let mut ready = self.ready_tls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = &*ready {
            return Ok(Arc::clone(config));
        }
        let config = tls::configuration(tls)?;
        *ready = Some(Arc::clone(&config));
        Ok(config)
    }

    /// The encryption's files are read again before the next connection: something is wrong with them, perhaps.
    pub(super) fn renew(&self) {
        *self.ready_tls.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
