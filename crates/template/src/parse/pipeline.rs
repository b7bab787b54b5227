//! Parses the pipeline of an action: declarations, commands and operands.

use crate::functions::Function;
use crate::limits;
use crate::parse::lexer::{ActionToken, ActionTokenKind, LexError};
use crate::parse::literal::{self, Character};
use crate::parse::messages;
use crate::parse::number::{self, NumberConstant, NumberError};
use crate::parse::words::{ActionWords, ParseError, PipelinePosition, SourceState};
use crate::span::Span;
use crate::tree::{CommandNode, FieldNode, Operand, OperandKind, Pipeline};
use crate::value::{TemplateValue, TextValue};

/// Parses a pipeline up to the end of its action.
pub(crate) fn pipeline<'s>(
    words: &mut ActionWords<'s>,
    names: &mut SourceState,
    context: PipelinePosition,
) -> Result<Pipeline, ParseError> {
    Reader { words, names, depth: 0 }.pipeline(context, ActionTokenKind::Right)
}

struct Reader<'w, 's> {
    words: &'w mut ActionWords<'s>,
    names: &'w mut SourceState,
    depth: usize,
}

impl<'s> Reader<'_, 's> {
    fn pipeline(&mut self, context: PipelinePosition, end: ActionTokenKind) -> Result<Pipeline, ParseError> {
        let start = self.words.peek_word().span;
        let mut pipe = Pipeline { span: start, ..Pipeline::default() };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.words.next_word();
            match token.kind {
                kind if kind == end => {
                    if pipe.commands.is_empty() {
                        return Err(messages::missing_value(token, context, &pipe));
                    }
                    check_stages(&pipe)?;
                    return Ok(pipe);
                }
                ActionTokenKind::Bool
                | ActionTokenKind::Character
                | ActionTokenKind::Complex
                | ActionTokenKind::Dot
                | ActionTokenKind::Field
                | ActionTokenKind::Identifier
                | ActionTokenKind::Number
                | ActionTokenKind::Nil
                | ActionTokenKind::Quoted
                | ActionTokenKind::Variable
                | ActionTokenKind::Open => {
                    self.words.back(token);
                    let command = self.command()?;
                    pipe.span = pipe.span.to(command.span);
                    pipe.commands.push(command);
                }
                _ => {
                    return Err(messages::unexpected(
                        self.words,
                        token,
                        pipe.commands.last().map(|c| c.span),
                    ));
                }
            }
        }
    }

    fn declarations(&mut self, pipe: &mut Pipeline, context: PipelinePosition) -> Result<(), ParseError> {
        loop {
            let variable = self.words.peek_word();
            if variable.kind != ActionTokenKind::Variable {
                return Ok(());
            }
            self.words.next_word();
            let after = self.words.next();
            let next = if after.kind == ActionTokenKind::Space { self.words.next_word() } else { after };
            let comma = next.kind == ActionTokenKind::Symbol && self.words.text(next.span) == b",";
            if !comma && !matches!(next.kind, ActionTokenKind::Assign | ActionTokenKind::Declare) {
                // An operand after all.
                self.words.back(next);
                if after.kind == ActionTokenKind::Space {
                    self.words.back(after);
                }
                self.words.back(variable);
                return Ok(());
            }
            pipe.assigns = next.kind == ActionTokenKind::Assign;
            let name = self.names.number(self.words.text(variable.span));
            pipe.declared.push((name, variable.span));
            self.names.scope.push(name, ());
            self.words.targets.push(variable);
            if !comma {
                return Ok(());
            }
            let follows = self.words.peek_word();
            if !context.range {
                return Err(ParseError::new(next.span, "only `range` can set two variables")
                    .help("set one variable per `{{ … }}`"));
            }
            if pipe.declared.len() >= 2 {
                return Err(ParseError::new(next.span, "`range` sets at most two variables")
                    .help("write {{ range $index, $value := … }}"));
            }
            if !matches!(
                follows.kind,
                ActionTokenKind::Variable | ActionTokenKind::Right | ActionTokenKind::Close
            ) {
                return Err(ParseError::new(follows.span, "`range` needs a second variable after the comma")
                    .help("write {{ range $index, $value := … }}"));
            }
        }
    }

    fn command(&mut self) -> Result<CommandNode, ParseError> {
        let mut operands: Vec<Operand> = Vec::new();
        loop {
            self.words.peek_word();
            if let Some(operand) = self.operand()? {
                operands.push(operand);
            }
            let token = self.words.next();
            match token.kind {
                ActionTokenKind::Space => {}
                ActionTokenKind::Right | ActionTokenKind::Close => {
                    self.words.back(token);
                    break;
                }
                ActionTokenKind::Pipe => break,
                _ => {
                    return Err(messages::unexpected(self.words, token, operands.last().map(|o| o.span)));
                }
            }
        }
        let mut operands = operands.into_iter();
        let Some(operand) = operands.next() else {
            let token = self.words.peek_word();
            return Err(ParseError::new(token.span, "missing value"));
        };
        let arguments: Vec<Operand> = operands.collect();
        let span = arguments.last().map_or(operand.span, |last| operand.span.to(last.span));
        Ok(CommandNode { operand, arguments, span })
    }

    fn operand(&mut self) -> Result<Option<Operand>, ParseError> {
        let Some(mut term) = self.term()? else { return Ok(None) };
        self.names.count(term.span)?;
        if self.words.peek().kind == ActionTokenKind::Field {
            term = self.chain(term)?;
        }
        Ok(Some(term))
    }

    /// Reads the fields after a term, such as `.A.B`.
    fn chain(&mut self, mut term: Operand) -> Result<Operand, ParseError> {
        let mut fields = Vec::new();
        let first = self.words.peek();
        while self.words.peek().kind == ActionTokenKind::Field {
            let token = self.words.next();
            self.names.count(token.span)?;
            fields.push(self.field(token));
        }
        let whole = fields.last().map_or(term.span, |last| term.span.to(last.span));
        term.kind = match term.kind {
            OperandKind::Fields(mut before) => {
                before.extend(fields);
                OperandKind::Fields(before)
            }
            OperandKind::Variable(name, _) => OperandKind::Variable(name, fields),
            OperandKind::Dot => {
                return Err(ParseError::new(term.span.to(first.span), "one dot too many")
                    .help(format!("write {}", self.words.shown(first.span))));
            }
            OperandKind::Nil | OperandKind::Constant(_) | OperandKind::Overflow => {
                let shown = self.words.shown(term.span);
                return Err(ParseError::new(first.span, format!("the constant `{shown}` has no fields"))
                    .help("separate arguments by a space"));
            }
            kind => OperandKind::Chain(Box::new(Operand { kind, span: term.span }), fields),
        };
        term.span = whole;
        Ok(term)
    }

    fn field(&self, token: ActionToken) -> FieldNode {
        let name = self.words.text(token.span).get(1..).unwrap_or_default().to_vec();
        FieldNode { name, span: token.span }
    }

    fn parenthesis(&mut self, open: Span) -> Result<Operand, ParseError> {
        if self.depth >= limits::DEPTH {
            return Err(messages::too_deep(open));
        }
        self.depth += 1;
        let context = PipelinePosition { word: "this pair of parentheses", range: false };
        let pipe = self.pipeline(context, ActionTokenKind::Close)?;
        self.depth -= 1;
        let end = self.words.last.map_or(open, |last| last.span);
        Ok(Operand { kind: OperandKind::Pipe(Box::new(pipe)), span: open.to(end) })
    }

    fn term(&mut self) -> Result<Option<Operand>, ParseError> {
        let token = self.words.next_word();
        match token.kind {
            ActionTokenKind::Open => self.parenthesis(token.span).map(Some),
            _ => self.plain_term(token),
        }
    }

    /// Reads a term that contains no other one. A separate function, so that nested parentheses use little stack.
    fn plain_term(&mut self, token: ActionToken) -> Result<Option<Operand>, ParseError> {
        let span = token.span;
        let text = self.words.text(span);
        let kind = match token.kind {
            ActionTokenKind::Identifier => match Function::named(text, self.names.dialect) {
                Some(function) => OperandKind::Function(function),
                None => return Err(messages::unknown_function(self.words, span, text, self.names.dialect)),
            },
            ActionTokenKind::Dot => OperandKind::Dot,
            ActionTokenKind::Nil => OperandKind::Nil,
            ActionTokenKind::Variable => {
                let name = self.names.number(text);
                if self.names.scope.get(name).is_none() {
                    return Err(messages::unknown_variable(span, text));
                }
                OperandKind::Variable(name, Vec::new())
            }
            ActionTokenKind::Field => OperandKind::Fields(vec![self.field(token)]),
            ActionTokenKind::Bool => OperandKind::Constant(TemplateValue::Bool(text == b"true")),
            ActionTokenKind::Character => match literal::character(text) {
                Character::Code(code) => OperandKind::Constant(TemplateValue::Int(code)),
                Character::NotOne => return Err(messages::not_one_character(span, text)),
                Character::BadEscape => return Err(bad_escape(span)),
            },
            ActionTokenKind::Complex => match number::complex(text) {
                Some(value) => OperandKind::Constant(value),
                None => return Err(messages::bad_number(span, text)),
            },
            ActionTokenKind::Number => match number::number(text) {
                Ok(NumberConstant::Value(value)) => OperandKind::Constant(value),
                Ok(NumberConstant::Overflow) => OperandKind::Overflow,
                Err(NumberError::TooLarge) => return Err(messages::large_number(span, text)),
                Err(NumberError::Malformed) => return Err(messages::bad_number(span, text)),
            },
            ActionTokenKind::Quoted => match literal::unquote(text) {
                Some(text) => OperandKind::Constant(TemplateValue::Text(TextValue::from(text))),
                None => return Err(bad_escape(span)),
            },
            _ => {
                self.words.back(token);
                return Ok(None);
            }
        };
        Ok(Some(Operand { kind, span }))
    }
}

fn bad_escape(span: Span) -> ParseError {
    ParseError::new(span, "unknown escape sequence in this constant")
        .help("write \\\\ for a backslash, or use `backquotes`, in which nothing is escaped")
}

/// Checks that each command after the first is a function, because it receives the value before the `|`.
fn check_stages(pipe: &Pipeline) -> Result<(), ParseError> {
    for command in pipe.commands.iter().skip(1) {
        if matches!(
            command.operand.kind,
            OperandKind::Constant(_) | OperandKind::Overflow | OperandKind::Dot | OperandKind::Nil
        ) {
            return Err(ParseError::new(command.operand.span, "only a function can follow `|`")
                .help("write a function after `|`, such as `default \"x\"`"));
        }
    }
    Ok(())
}

/// Returns true if a missing `}}` typically causes an error at this token.
pub(crate) fn suggests_unclosed(token: Option<ActionToken>) -> bool {
    token.is_some_and(|token| {
        matches!(token.kind, ActionTokenKind::Symbol | ActionTokenKind::Assign)
            || matches!(token.kind, ActionTokenKind::Broken(error) if error != LexError::Number)
    })
}
