//! Text to plan: the rules of a configuration, its mistakes, and the golden cases of ContainerPilot 3.8.

mod broken;
mod compat;
mod conformance;
mod rules;
