//! Programs as they are: servers that support systemd or s6.
