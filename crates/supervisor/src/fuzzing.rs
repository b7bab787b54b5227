//! The fuzz targets of private parsers.

/// Any bytes as answers of Consul.
pub fn consul(bytes: &[u8]) {
    crate::discovery::fuzz::run(bytes);
}

/// Any bytes as answers of a name server.
pub fn names(bytes: &[u8]) {
    crate::net::resolve::fuzz::run(bytes);
}

/// Any bytes as requests to the control socket.
pub fn requests(bytes: &[u8]) {
    crate::control::fuzz::run(bytes);
}

/// Any bytes as the answer to a health check.
pub fn status(bytes: &[u8]) {
    crate::runtime::probe::fuzz::run(bytes);
}

/// Any bytes as values of metrics.
pub fn values(bytes: &[u8]) {
    crate::telemetry::fuzz::run(bytes);
}
