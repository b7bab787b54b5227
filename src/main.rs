//! The `containerpilot` program. Everything is in the library, so that tests and fuzz targets can use it.
#![no_main]

containerpilot::entry!();
