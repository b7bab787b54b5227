//! The words of `status` and `explain`, for what a recording would have answered (B4).

use containerpilot_command_line::failure::Failure;

use super::client::ApiResponse;
use super::{explain, status};

/// Prints a response of `GET /v3/status`: of everything, or of what is named.
pub fn status(response: String, name: Option<String>, json: bool) -> Result<(), Failure> {
    status::show(&ApiResponse::replayed(response), name, json)
}

/// Prints a response of `GET /v3/KIND/NAME/explain`.
pub fn explanation(response: String, json: bool) -> Result<(), Failure> {
    explain::print_explanation(&ApiResponse::replayed(response), json)
}
