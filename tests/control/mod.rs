//! The control socket of the real binary, used by a minimal HTTP client and by curl (X1, X2, D8, L5, E4, S6).

mod bad_clients;
mod curl;
mod jobs;
mod openapi;
mod routes;
mod socket;
mod streams;
