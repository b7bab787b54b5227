//! Computes pipelines.

use super::budget::Budget;
use super::funcs::{Context, Function, Parameter, Problem};
use super::scope::Scope;
use super::tree::{Command, Field, Operand, Pipe, ValueType};
use super::value::{Text, Value};
use super::{Stage, TemplateError};
use crate::limits;
use crate::span::Span;
use std::rc::Rc;

use std::collections::{BTreeMap, BTreeSet};

/// The value could not be had. The reason has been reported, or follows from one that has.
#[derive(Debug)]
pub(super) struct Failed;

/// What a rendering knows while it runs.
pub(super) struct State<'s> {
    pub(super) source: &'s [u8],
    pub(super) environment: Rc<BTreeMap<Text, Text>>,
    pub(super) names: &'s [String],
    /// The variables; `None` for one whose value could not be computed.
    pub(super) scope: Scope<Option<Value>>,
    pub(super) budget: Budget,
    pub(super) errors: Vec<TemplateError>,
    reported: BTreeSet<Span>,
    /// No further errors are wanted, or a limit was met.
    pub(super) over: bool,
}

impl<'s> State<'s> {
    pub(super) fn new(source: &'s [u8], environment: BTreeMap<Text, Text>, names: &'s [String]) -> Self {
        Self {
            source,
            environment: Rc::new(environment),
            names,
            scope: Scope::new(),
            budget: Budget::default(),
            errors: Vec::new(),
            reported: BTreeSet::new(),
            over: false,
        }
    }

    /// Reports a problem at a place, once.
    pub(super) fn report(&mut self, span: Span, problem: Problem) -> Failed {
        self.over |= problem.fatal;
        if self.reported.insert(span) && self.errors.len() < limits::ERRORS {
            self.errors.push(TemplateError {
                stage: Stage::Exec,
                span,
                message: problem.message,
                help: problem.help,
            });
        }
        self.over |= self.errors.len() >= limits::ERRORS;
        Failed
    }

    pub(super) fn shown(&self, span: Span) -> String {
        let text = self.source.get(span.range()).unwrap_or_default();
        let text = String::from_utf8_lossy(text);
        text.chars().take(60).collect()
    }

    /// Computes a pipeline and declares or sets its variables.
    pub(super) fn pipeline(&mut self, dot: &Value, pipe: &Pipe) -> Result<Value, Failed> {
        let value = self.commands(dot, pipe);
        for &(name, span) in &pipe.declared {
            let copy = value.as_ref().ok().cloned();
            if !pipe.assigns {
                self.scope.push(name, copy);
            } else if !self.scope.set(name, copy) {
                return Err(self.undeclared(name, span));
            }
        }
        value
    }

    fn undeclared(&mut self, name: super::scope::Name, span: Span) -> Failed {
        let variable = self.names.get(name as usize).cloned().unwrap_or_default();
        let problem = Problem::new(format!("the variable `{variable}` is not declared"));
        self.report(span, problem.help(format!("declare it with {{{{ {variable} := … }}}}")))
    }

    fn commands(&mut self, dot: &Value, pipe: &Pipe) -> Result<Value, Failed> {
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(dot, command, value)?);
        }
        Ok(value.unwrap_or(Value::Nil))
    }

    fn command(&mut self, dot: &Value, command: &Command, last: Option<Value>) -> Result<Value, Failed> {
        if let Err(problem) = self.budget.step(1) {
            return Err(self.report(command.span, problem));
        }
        let operand = &command.operand;
        let arguments = &command.arguments;
        match &operand.kind {
            ValueType::Function(function) => self.call(dot, *function, operand.span, arguments, last),
            ValueType::Fields(fields) => self.fields(dot.clone(), fields, operand, arguments, last.is_some()),
            ValueType::Chain(inner, fields) => {
                let value = self.operand(dot, inner)?;
                self.fields(value, fields, operand, arguments, last.is_some())
            }
            ValueType::Variable(name, fields) if !fields.is_empty() => {
                let value = self.variable(*name, operand.span)?;
                self.fields(value, fields, operand, arguments, last.is_some())
            }
            _ => {
                if !arguments.is_empty() || last.is_some() {
                    return Err(self.no_function(operand, arguments));
                }
                if matches!(operand.kind, ValueType::Nil) {
                    return Err(self.lone_nil(operand.span));
                }
                self.operand(dot, operand)
            }
        }
    }

    fn lone_nil(&mut self, span: Span) -> Failed {
        self.report(span, Problem::new("`nil` cannot stand alone").help("use \"\" for an empty text"))
    }

    fn no_function(&mut self, operand: &Operand, arguments: &[Operand]) -> Failed {
        let shown = self.shown(operand.span);
        let span = arguments.first().map_or(operand.span, |argument| argument.span);
        let problem = Problem::new(format!("`{shown}` is no function and takes no arguments"));
        let problem = if arguments.is_empty() {
            problem.help("after `|` comes a function, such as `default \"x\"`")
        } else {
            problem.help("put each value in its own {{ … }}, or a function in front, such as `print`")
        };
        self.report(span, problem)
    }

    /// The value of an operand without arguments.
    fn operand(&mut self, dot: &Value, operand: &Operand) -> Result<Value, Failed> {
        match &operand.kind {
            ValueType::Dot => Ok(dot.clone()),
            ValueType::Nil => Ok(Value::Nil),
            ValueType::Constant(value) => Ok(value.clone()),
            ValueType::Overflow => Err(self.overflow(operand.span)),
            ValueType::Function(function) => self.call(dot, *function, operand.span, &[], None),
            ValueType::Fields(fields) => self.fields(dot.clone(), fields, operand, &[], false),
            ValueType::Variable(name, fields) => {
                let value = self.variable(*name, operand.span)?;
                self.fields(value, fields, operand, &[], false)
            }
            ValueType::Pipe(pipe) => self.pipeline(dot, pipe),
            ValueType::Chain(inner, fields) => {
                let value = self.operand(dot, inner)?;
                self.fields(value, fields, operand, &[], false)
            }
        }
    }

    fn overflow(&mut self, span: Span) -> Failed {
        let shown = self.shown(span);
        let problem = Problem::new(format!("the number {shown} is too large"));
        self.report(span, problem.help("write it in double quotes to use it as text"))
    }

    fn variable(&mut self, name: super::scope::Name, span: Span) -> Result<Value, Failed> {
        match self.scope.get(name) {
            Some(Some(value)) => Ok(value.clone()),
            Some(None) => Err(Failed),
            None => {
                let variable = self.names.get(name as usize).cloned().unwrap_or_default();
                Err(self.report(
                    span,
                    Problem::new(format!(
                        "the variable `{variable}` is not declared on the way that leads here"
                    ))
                    .help("declare it before the block"),
                ))
            }
        }
    }

    /// Follows names after dots.
    fn fields(
        &mut self,
        mut value: Value,
        fields: &[Field],
        operand: &Operand,
        arguments: &[Operand],
        piped: bool,
    ) -> Result<Value, Failed> {
        for (index, field) in fields.iter().enumerate() {
            let last = index + 1 == fields.len();
            value = match &value {
                // What has no value has none in any field.
                Value::Nil => Value::Nil,
                Value::Map(_) if last && (piped || !arguments.is_empty()) => {
                    return Err(self.no_function(operand, arguments));
                }
                Value::Map(map) => {
                    let found = map.get(field.name.as_slice()).cloned();
                    Value::Text(found.unwrap_or_else(|| Text::from(&b""[..])))
                }
                other => {
                    let owner = Span { start: operand.span.start, end: field.span.start };
                    let shown = if owner.is_empty() { ".".to_owned() } else { self.shown(owner) };
                    let name = String::from_utf8_lossy(&field.name).into_owned();
                    let problem =
                        Problem::new(format!("`{shown}` is {} and has no field `{name}`", other.described()));
                    let problem = if owner.is_empty() {
                        problem
                            .help(format!("inside `range` and `with` the environment is `$`: write $.{name}"))
                    } else if matches!(other, Value::Text(_)) {
                        problem.help("variables of the environment are plain text; a name with a dot in it is read by `index . \"A.B\"`")
                    } else {
                        problem
                    };
                    return Err(self.report(field.span, problem));
                }
            };
        }
        Ok(value)
    }

    fn call(
        &mut self,
        dot: &Value,
        function: Function,
        name: Span,
        arguments: &[Operand],
        last: Option<Value>,
    ) -> Result<Value, Failed> {
        let signature = function.signature();
        let given = arguments.len() + usize::from(last.is_some());
        let needed = signature.fixed.len();
        if given < needed || given > needed && !signature.more {
            return Err(self.wrong_count(function, given, name));
        }
        let parameter = |index: usize| signature.fixed.get(index).copied().unwrap_or(Parameter::Any);
        let mut values = Vec::with_capacity(given);
        for (index, argument) in arguments.iter().enumerate() {
            let value = self.argument(dot, argument, function, parameter(index))?;
            if function.stops_at() == Some(value.truth()) {
                return Ok(value);
            }
            values.push(value);
        }
        if let Some(value) = last {
            values.push(self.fitting(value, function, parameter(arguments.len()), name)?);
        }
        let mut context = Context { budget: &mut self.budget, environment: &self.environment };
        function.call(&mut context, &values).map_err(|problem| {
            let span = problem
                .argument
                .and_then(|index| arguments.get(index))
                .map_or(name, |argument| argument.span);
            self.report(span, problem)
        })
    }

    fn wrong_count(&mut self, function: Function, given: usize, name: Span) -> Failed {
        let signature = function.signature();
        let needed = signature.fixed.len();
        let least = if signature.more { "at least " } else { "" };
        let plural = if needed == 1 { "" } else { "s" };
        let problem =
            Problem::new(format!("`{}` takes {least}{needed} argument{plural}, not {given}", signature.name));
        self.report(name, problem.help(format!("write: {}", signature.usage)))
    }

    fn argument(
        &mut self,
        dot: &Value,
        operand: &Operand,
        function: Function,
        parameter: Parameter,
    ) -> Result<Value, Failed> {
        let value = self.operand(dot, operand)?;
        self.fitting(value, function, parameter, operand.span)
    }

    /// The value, if the parameter takes it.
    fn fitting(
        &mut self,
        value: Value,
        function: Function,
        parameter: Parameter,
        span: Span,
    ) -> Result<Value, Failed> {
        let wanted = match (parameter, &value) {
            (Parameter::Any, _)
            | (Parameter::Text, Value::Text(_))
            | (Parameter::Texts, Value::Texts(_) | Value::Nil) => return Ok(value),
            (Parameter::Text, _) => "text",
            (Parameter::Texts, _) => "a list of texts",
        };
        let signature = function.signature();
        let problem = Problem::new(format!(
            "`{}` needs {wanted} here, and this is {}",
            signature.name,
            value.described()
        ));
        Err(self.report(
            span,
            match (parameter, &value) {
                (Parameter::Text, Value::Int(_) | Value::Float(_) | Value::Bool(_)) => {
                    problem.help("write it in double quotes")
                }
                (Parameter::Texts, Value::Text(_)) => problem.help("make a list of it with `split`"),
                _ => problem.help(format!("write: {}", signature.usage)),
            },
        ))
    }
}
