//! Texts of a process: templates with variables of the file, and variables of the environment.

use containerpilot_core::plan::REPLICA_VARIABLE;

use super::project::Project;
use crate::command_line;
use crate::document::{Document, Field, Fields, Value};
use crate::error::ImportError;
use crate::merge::names_of_list;
use crate::variables::{self, Piece};
use crate::yaml::{Map, YamlNode};

pub(super) const NUMBERS_DIFFER: &str = "PC_REPLICA_NUM counts from 0, CONTAINERPILOT_REPLICA from 1";

/// How texts of a process are read.
pub(super) struct Texts<'a> {
    pub(super) project: &'a Project,
    /// The variables of the process itself.
    pub(super) vars: Option<&'a Map>,
    /// Whether there is more than one process.
    pub(super) replicated: bool,
}

impl Texts<'_> {
    pub(super) fn pieces(&self, node: &YamlNode, document: &mut Document) -> Result<Vec<Piece>, ImportError> {
        let Some(text) = node.text() else {
            return Err(node.error(format!("expected a text, not {}", node.what())));
        };
        let text = self.rendered(text, node, false, document);
        Ok(self.expanded(text, node, document))
    }

    /// The same for a line of the shell of this file, which runs with the variables of the process.
    pub(super) fn shell_pieces(
        &self,
        node: &YamlNode,
        document: &mut Document,
    ) -> Result<Vec<Piece>, ImportError> {
        match node.text() {
            // The shell does not replace anything between single quotes.
            Some(text) if is_shell(&self.project.shell[0]) && !text.contains('\'') => {
                let text = self.rendered(text, node, true, document);
                Ok(self.expanded(text, node, document))
            }
            _ => self.pieces(node, document),
        }
    }

    pub(super) fn expanded(&self, text: String, node: &YamlNode, document: &mut Document) -> Vec<Piece> {
        if !self.project.expand {
            return vec![Piece::Literal(text)];
        }
        let (pieces, problem) = variables::pieces_or_literal(&text);
        if let Some(why) = problem {
            document.inexact(&node.place(), why);
        }
        pieces
    }

    pub(super) fn value(&self, node: &YamlNode, document: &mut Document) -> Result<Value, ImportError> {
        self.pieces(node, document).map(variables::value)
    }

    /// Puts the variables of the file in place of `{{ .NAME }}`.
    fn rendered(&self, text: &str, node: &YamlNode, in_shell: bool, document: &mut Document) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((action, after)) = action_and_rest(after) else { break };
            out.push_str(before);
            let name = action.trim_matches(['-', ' ', '\t', '\n']);
            let quoted = |mark| name.strip_prefix(mark).and_then(|name| name.strip_suffix(mark));
            let var = name.strip_prefix('.').and_then(|name| {
                let own = self.vars.and_then(|vars| vars.get(name));
                own.or_else(|| self.project.vars.get(name))?.text()
            });
            match (var, quoted('"').or_else(|| quoted('`'))) {
                (Some(value), _) => out.push_str(value),
                (None, Some(text)) if !text.contains(['"', '`', '\\']) => out.push_str(text),
                (None, _) if name == ".PC_REPLICA_NUM" && !self.replicated => out.push('0'),
                (None, _) if name == ".PC_REPLICA_NUM" => {
                    let dollar = if self.project.expand { "$$" } else { "$" };
                    if in_shell {
                        out.push_str(&format!("{dollar}(({REPLICA_VARIABLE} - 1))"));
                        rest = after;
                        continue;
                    }
                    out.push_str(&format!("{dollar}{{{REPLICA_VARIABLE}}}"));
                    document.inexact(&node.place_of(name), NUMBERS_DIFFER);
                }
                (None, _) => {
                    out.push_str(&format!("{{{{{action}}}}}"));
                    let why = "this template action is not converted: write its result";
                    document.inexact(&node.place_of(action), why);
                }
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }

    /// A line for the shell of the file.
    pub(super) fn line(&self, pieces: Vec<Piece>) -> Value {
        let [shell, argument] = &self.project.shell;
        if let [Piece::Literal(line)] = pieces.as_slice() {
            let exec = command_line::shell(line.trim());
            if let Value::List(words) = &exec
                && !matches!(words.as_slice(), [sh, c, _] if *sh == Value::from("sh") && *c == Value::from("-c"))
            {
                return exec;
            }
        }
        Value::List(vec![shell.as_str().into(), argument.as_str().into(), variables::value(pieces)])
    }

    /// The variables of `environment`, a list of `NAME=value`.
    pub(super) fn environment(
        &self,
        node: &YamlNode,
        document: &mut Document,
    ) -> Result<Vec<Field>, ImportError> {
        let names = names_of_list(node);
        let Some(map) = names.map() else {
            return Err(node.error("`environment` takes a list of `NAME=value`"));
        };
        let mut env = Vec::new();
        for variable in map {
            if variable.value.is_null() {
                document.not_needed(&variable.place(), "a job has all variables of the container");
            } else if !variable.key.is_empty() {
                env.set(&variable.key, self.value(&variable.value, document)?, Some(&variable.place()));
            }
        }
        Ok(env)
    }
}

/// Whether it is a shell with the arithmetic of POSIX.
pub(super) fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    matches!(name, "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh")
}

/// An action, and what follows its `}}`. A string in the action may contain braces.
fn action_and_rest(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_start();
    let quoted = ['"', '`'].into_iter().find_map(|mark| {
        let end = inner.strip_prefix(mark)?.find(mark)? + 2;
        let (string, rest) = inner.split_at_checked(end)?;
        Some((string, rest.trim_start().strip_prefix("}}")?))
    });
    quoted.or_else(|| text.split_once("}}"))
}
