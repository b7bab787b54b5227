//! The template language and its functions.

mod files;
mod rules;
