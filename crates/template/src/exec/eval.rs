//! Evaluates pipelines.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::budget::Budget;
use crate::data::LookUp;
use crate::error::{FunctionError, TemplateError, TemplateStage};
use crate::functions::{CallContext, Function, Parameter};
use crate::limits;
use crate::scope::{Scope, VariableName};
use crate::span::Span;
use crate::tree::{CommandNode, FieldNode, Operand, OperandKind, Pipeline};
use crate::value::{TemplateValue, TextValue};

/// There is no value. The error has been reported, or is the consequence of one that has been.
#[derive(Debug)]
pub(crate) struct Failed;

/// The state of a rendering.
pub(crate) struct RenderState<'s> {
    pub(crate) source: &'s [u8],
    pub(crate) environment: Rc<BTreeMap<TextValue, TextValue>>,
    data: Option<&'s dyn LookUp>,
    pub(crate) names: &'s [String],
    /// The variables; `None` for one whose pipeline failed.
    pub(crate) scope: Scope<Option<TemplateValue>>,
    pub(crate) budget: Budget,
    pub(crate) errors: Vec<TemplateError>,
    reported: BTreeSet<Span>,
    /// Set when a limit is exceeded or enough errors have been collected.
    pub(crate) stopped: bool,
}

impl<'s> RenderState<'s> {
    pub(crate) fn new(
        source: &'s [u8],
        environment: BTreeMap<TextValue, TextValue>,
        data: Option<&'s dyn LookUp>,
        names: &'s [String],
    ) -> Self {
        Self {
            source,
            environment: Rc::new(environment),
            data,
            names,
            scope: Scope::new(),
            budget: Budget::default(),
            errors: Vec::new(),
            reported: BTreeSet::new(),
            stopped: false,
        }
    }

    /// Reports an error, once per range of the source.
    pub(crate) fn report(&mut self, span: Span, error: FunctionError) -> Failed {
        self.stopped |= error.fatal;
        if self.reported.insert(span) && self.errors.len() < limits::ERRORS {
            let FunctionError { message, help, .. } = error;
            TemplateError { stage: TemplateStage::Exec, span, message, help }.add_to(&mut self.errors);
        }
        self.stopped |= self.errors.len() >= limits::ERRORS;
        Failed
    }

    pub(crate) fn shown(&self, span: Span) -> String {
        let text = self.source.get(span.range()).unwrap_or_default();
        let text = String::from_utf8_lossy(text);
        text.chars().take(60).collect()
    }

    /// Evaluates a pipeline and declares or sets its variables.
    pub(crate) fn pipeline(&mut self, dot: &TemplateValue, pipe: &Pipeline) -> Result<TemplateValue, Failed> {
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

    fn undeclared(&mut self, name: VariableName, span: Span) -> Failed {
        let variable = self.names.get(name as usize).cloned().unwrap_or_default();
        let error = FunctionError::new(format!("undeclared variable `{variable}`"));
        self.report(span, error.help(format!("declare it with {{{{ {variable} := … }}}}")))
    }

    fn commands(&mut self, dot: &TemplateValue, pipe: &Pipeline) -> Result<TemplateValue, Failed> {
        let mut last = None;
        for command in &pipe.commands {
            last = Some((self.command(dot, command, last)?, command.span));
        }
        Ok(last.map_or(TemplateValue::Nil, |(value, _)| value))
    }

    /// Evaluates a command. `last` is the value of the previous one and its place.
    fn command(
        &mut self,
        dot: &TemplateValue,
        command: &CommandNode,
        last: Option<(TemplateValue, Span)>,
    ) -> Result<TemplateValue, Failed> {
        if let Err(error) = self.budget.step(1) {
            return Err(self.report(command.span, error));
        }
        let operand = &command.operand;
        let arguments = &command.arguments;
        match &operand.kind {
            OperandKind::Function(function) => self.call(dot, *function, operand.span, arguments, last),
            OperandKind::Fields(fields) => {
                self.fields(dot.clone(), fields, operand, arguments, last.is_some())
            }
            OperandKind::Chain(inner, fields) => {
                let value = self.operand(dot, inner)?;
                self.fields(value, fields, operand, arguments, last.is_some())
            }
            OperandKind::Variable(name, fields) if !fields.is_empty() => {
                let value = self.variable(*name, operand.span)?;
                self.fields(value, fields, operand, arguments, last.is_some())
            }
            _ => {
                if !arguments.is_empty() || last.is_some() {
                    return Err(self.not_a_function(operand, arguments));
                }
                if matches!(operand.kind, OperandKind::Nil) {
                    return Err(self.lone_nil(operand.span));
                }
                self.operand(dot, operand)
            }
        }
    }

    fn lone_nil(&mut self, span: Span) -> Failed {
        self.report(span, FunctionError::new("`nil` is not a command").help("use \"\" for an empty string"))
    }

    fn not_a_function(&mut self, operand: &Operand, arguments: &[Operand]) -> Failed {
        let shown = self.shown(operand.span);
        let span = arguments.first().map_or(operand.span, |argument| argument.span);
        let error = FunctionError::new(format!("`{shown}` is not a function and takes no arguments"));
        let error = if arguments.is_empty() {
            error.help("write a function after `|`, such as `default \"x\"`")
        } else {
            error.help("put each value in its own {{ … }}, or write a function first, such as `print`")
        };
        self.report(span, error)
    }

    /// The value of an operand without arguments.
    fn operand(&mut self, dot: &TemplateValue, operand: &Operand) -> Result<TemplateValue, Failed> {
        match &operand.kind {
            OperandKind::Dot => Ok(dot.clone()),
            OperandKind::Nil => Ok(TemplateValue::Nil),
            OperandKind::Constant(value) => Ok(value.clone()),
            OperandKind::Overflow => Err(self.overflow(operand.span)),
            OperandKind::Function(function) => self.call(dot, *function, operand.span, &[], None),
            OperandKind::Fields(fields) => self.fields(dot.clone(), fields, operand, &[], false),
            OperandKind::Variable(name, fields) => {
                let value = self.variable(*name, operand.span)?;
                self.fields(value, fields, operand, &[], false)
            }
            OperandKind::Pipe(pipe) => self.pipeline(dot, pipe),
            OperandKind::Chain(inner, fields) => {
                let value = self.operand(dot, inner)?;
                self.fields(value, fields, operand, &[], false)
            }
        }
    }

    fn overflow(&mut self, span: Span) -> Failed {
        let shown = self.shown(span);
        let error = FunctionError::new(format!("the number {shown} is too large"));
        self.report(span, error.help("put it in double quotes to use it as a string"))
    }

    fn variable(&mut self, name: VariableName, span: Span) -> Result<TemplateValue, Failed> {
        match self.scope.get(name) {
            Some(Some(value)) => Ok(value.clone()),
            Some(None) => Err(Failed),
            None => {
                let variable = self.names.get(name as usize).cloned().unwrap_or_default();
                Err(self.report(
                    span,
                    FunctionError::new(format!(
                        "the variable `{variable}` is not declared on the path that was taken"
                    ))
                    .help("declare it before the block"),
                ))
            }
        }
    }

    /// Evaluates field accesses such as `.A.B`.
    fn fields(
        &mut self,
        mut value: TemplateValue,
        fields: &[FieldNode],
        operand: &Operand,
        arguments: &[Operand],
        piped: bool,
    ) -> Result<TemplateValue, Failed> {
        for (index, field) in fields.iter().enumerate() {
            let last = index + 1 == fields.len();
            value = match &value {
                // A field of nil is nil.
                TemplateValue::Nil => TemplateValue::Nil,
                TemplateValue::Map(_) | TemplateValue::Record(_)
                    if last && (piped || !arguments.is_empty()) =>
                {
                    return Err(self.not_a_function(operand, arguments));
                }
                TemplateValue::Map(map) => {
                    let found = map.get(field.name.as_slice()).cloned();
                    TemplateValue::Text(found.unwrap_or_else(|| TextValue::from(&b""[..])))
                }
                TemplateValue::Record(record) => match record.field(&field.name) {
                    Some(found) => found.clone(),
                    None => return Err(self.report(field.span, record.unknown(&field.name))),
                },
                other => {
                    let owner = Span { start: operand.span.start, end: field.span.start };
                    let shown = if owner.is_empty() { ".".to_owned() } else { self.shown(owner) };
                    let name = String::from_utf8_lossy(&field.name).into_owned();
                    let error = FunctionError::new(format!(
                        "`{shown}` is {} and has no field `{name}`",
                        other.described()
                    ));
                    let error = if owner.is_empty() {
                        error
                            .help(format!("inside `range` and `with` the environment is `$`: write $.{name}"))
                    } else if matches!(other, TemplateValue::Text(_)) {
                        error.help("environment variables are strings; write `index . \"A.B\"` for a name with a dot")
                    } else {
                        error
                    };
                    return Err(self.report(field.span, error));
                }
            };
        }
        Ok(value)
    }

    fn call(
        &mut self,
        dot: &TemplateValue,
        function: Function,
        name: Span,
        arguments: &[Operand],
        last: Option<(TemplateValue, Span)>,
    ) -> Result<TemplateValue, Failed> {
        let signature = function.signature();
        let count = arguments.len() + usize::from(last.is_some());
        let needed = signature.fixed.len();
        if count < needed || count > needed && !signature.more {
            return Err(self.wrong_count(function, count, name));
        }
        let parameter = |index: usize| signature.fixed.get(index).copied().unwrap_or(Parameter::Any);
        let mut values = Vec::with_capacity(count);
        for (index, argument) in arguments.iter().enumerate() {
            let value = self.argument(dot, argument, function, parameter(index))?;
            if function.stops_at() == Some(value.truth()) {
                return Ok(value);
            }
            values.push(value);
        }
        let piped = last.as_ref().map(|(_, span)| *span);
        if let Some((value, _)) = last {
            values.push(self.accepted(value, function, parameter(arguments.len()), name)?);
        }
        if function.is_required() {
            return self.required(arguments.first(), piped.unwrap_or(name), values.pop());
        }
        let mut context =
            CallContext { budget: &mut self.budget, environment: &self.environment, data: self.data };
        function.call(&mut context, &values).map_err(|error| {
            let span =
                error.argument.and_then(|index| arguments.get(index)).map_or(name, |argument| argument.span);
            self.report(span, error)
        })
    }

    /// C9: the value, which must not be empty. A name in quotes stands for the environment variable.
    fn required(
        &mut self,
        argument: Option<&Operand>,
        piped: Span,
        value: Option<TemplateValue>,
    ) -> Result<TemplateValue, Failed> {
        let span = argument.map_or(piped, |argument| argument.span);
        let named = argument.is_some_and(|argument| matches!(argument.kind, OperandKind::Constant(_)));
        let (value, what) = match value {
            Some(TemplateValue::Text(name)) if named => {
                let found =
                    self.environment.get(&name).cloned().map_or(TemplateValue::Nil, TemplateValue::Text);
                (found, format!("the environment variable `{}`", String::from_utf8_lossy(&name)))
            }
            value => (value.unwrap_or(TemplateValue::Nil), format!("`{}`", self.shown(span))),
        };
        let is_empty = match &value {
            TemplateValue::Nil => true,
            TemplateValue::Text(text) => text.is_empty(),
            TemplateValue::Texts(list) => list.items().is_empty(),
            _ => false,
        };
        if is_empty {
            let error = FunctionError::new(format!("{what} is required, but it is unset or empty"));
            return Err(
                self.report(span, error.help("set the variable in the environment of the supervisor"))
            );
        }
        Ok(value)
    }

    fn wrong_count(&mut self, function: Function, count: usize, name: Span) -> Failed {
        let signature = function.signature();
        let needed = signature.fixed.len();
        let least = if signature.more { "at least " } else { "" };
        let plural = if needed == 1 { "" } else { "s" };
        let error = FunctionError::new(format!(
            "`{}` takes {least}{needed} argument{plural}, not {count}",
            signature.name
        ));
        self.report(name, error.help(format!("write: {}", signature.usage)))
    }

    fn argument(
        &mut self,
        dot: &TemplateValue,
        operand: &Operand,
        function: Function,
        parameter: Parameter,
    ) -> Result<TemplateValue, Failed> {
        let value = self.operand(dot, operand)?;
        self.accepted(value, function, parameter, operand.span)
    }

    /// Checks that the parameter accepts the value.
    fn accepted(
        &mut self,
        value: TemplateValue,
        function: Function,
        parameter: Parameter,
        span: Span,
    ) -> Result<TemplateValue, Failed> {
        let expected = match (parameter, &value) {
            (Parameter::Any, _)
            | (Parameter::Text, TemplateValue::Text(_))
            | (Parameter::Texts, TemplateValue::Texts(_) | TemplateValue::Nil) => return Ok(value),
            (Parameter::Text, _) => "a string",
            (Parameter::Texts, _) => "a list of strings",
        };
        let signature = function.signature();
        let error = FunctionError::new(format!(
            "`{}` needs {expected} here, not {}",
            signature.name,
            value.described()
        ));
        Err(self.report(
            span,
            match (parameter, &value) {
                (
                    Parameter::Text,
                    TemplateValue::Int(_) | TemplateValue::Float(_) | TemplateValue::Bool(_),
                ) => error.help("put it in double quotes"),
                (Parameter::Texts, TemplateValue::Text(_)) => error.help("convert it to a list with `split`"),
                _ => error.help(format!("write: {}", signature.usage)),
            },
        ))
    }
}
