//! Reads the pipeline of an action: declarations, commands, operands.

use super::funcs::Function;
use super::hint;
use super::lex::{Flaw, Lexer, Token, ValueType as Word};
use super::number::{self, Number, NumberError};
use super::quote::{self, Character};
use super::scope::{DOLLAR, Name, Scope};
use super::tree::{Command, Field, Operand, Pipe, ValueType};
use super::value::{Text, Value};
use crate::limits;
use crate::span::Span;
use std::collections::HashMap;

/// A mistake in one action.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) span: Span,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Mistake {
    pub(super) fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// What the actions of a text have in common while it is read.
#[derive(Debug)]
pub(super) struct Names {
    numbers: HashMap<Vec<u8>, Name>,
    pub(super) variables: Vec<String>,
    /// The variables that may be used here.
    pub(super) scope: Scope<()>,
    /// How many operands and blocks there are so far.
    pub(super) nodes: usize,
}

impl Names {
    pub(super) fn new() -> Self {
        let mut names =
            Self { numbers: HashMap::new(), variables: Vec::new(), scope: Scope::new(), nodes: 0 };
        let dollar = names.number(b"$");
        debug_assert_eq!(dollar, DOLLAR);
        names.scope.push(DOLLAR, ());
        names
    }

    fn number(&mut self, name: &[u8]) -> Name {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let next = Name::try_from(self.variables.len()).unwrap_or(Name::MAX);
        self.variables.push(String::from_utf8_lossy(name).into_owned());
        self.numbers.insert(name.to_vec(), next);
        next
    }

    /// Makes a variable known without a value.
    pub(super) fn declare(&mut self, name: &[u8]) {
        let name = self.number(name);
        self.scope.push(name, ());
    }

    /// Counts one more node, up to the limit.
    pub(super) fn count(&mut self, span: Span) -> Result<(), Mistake> {
        self.nodes += 1;
        if self.nodes > limits::TEMPLATE_NODES {
            return Err(Mistake::new(
                span,
                format!("the template has more than {} parts", limits::TEMPLATE_NODES),
            )
            .help("split the configuration, or make the repeated parts with `range`"));
        }
        Ok(())
    }
}

/// The words of one action, with the look-ahead that its grammar needs.
#[derive(Debug)]
pub(super) struct Words<'s> {
    pub(super) lexer: Lexer<'s>,
    source: &'s [u8],
    /// Words that were read ahead, the next one last.
    ahead: Vec<Token>,
    /// The variables in front of the first `:=` or `=`, for recovery.
    pub(super) targets: Vec<Token>,
    /// What was read last, for messages.
    pub(super) last: Option<Token>,
}

impl<'s> Words<'s> {
    pub(super) fn new(source: &'s [u8], position: usize) -> Self {
        let lexer = Lexer::new(source, position);
        Self { lexer, source, ahead: Vec::new(), targets: Vec::new(), last: None }
    }

    pub(super) fn text(&self, span: Span) -> &'s [u8] {
        self.source.get(span.range()).unwrap_or_default()
    }

    /// A little of what follows `from`.
    pub(super) fn tail(&self, from: usize) -> &'s [u8] {
        let tail = self.source.get(from..).unwrap_or_default();
        tail.get(..200).unwrap_or(tail)
    }

    pub(super) fn shown(&self, span: Span) -> String {
        String::from_utf8_lossy(self.text(span)).into_owned()
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.ahead.pop().unwrap_or_else(|| self.lexer.next());
        self.last = Some(token);
        token
    }

    pub(super) fn back(&mut self, token: Token) {
        self.ahead.push(token);
    }

    fn peek(&mut self) -> Token {
        let token = self.ahead.pop().unwrap_or_else(|| self.lexer.next());
        self.ahead.push(token);
        token
    }

    pub(super) fn next_word(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.kind != Word::Space {
                return token;
            }
        }
    }

    pub(super) fn peek_word(&mut self) -> Token {
        let token = self.next_word();
        self.back(token);
        token
    }
}

/// Where a pipeline stands, which decides how it may begin and what ends it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Context {
    /// The keyword, or what else to call the place in a message.
    pub(super) word: &'static str,
    pub(super) range: bool,
}

/// Reads a pipeline up to the end of its action.
pub(super) fn pipeline<'s>(
    words: &mut Words<'s>,
    names: &mut Names,
    context: Context,
) -> Result<Pipe, Mistake> {
    Reader { words, names, depth: 0 }.pipeline(context, Word::Right)
}

struct Reader<'w, 's> {
    words: &'w mut Words<'s>,
    names: &'w mut Names,
    depth: usize,
}

impl<'s> Reader<'_, 's> {
    fn pipeline(&mut self, context: Context, end: Word) -> Result<Pipe, Mistake> {
        let start = self.words.peek_word().span;
        let mut pipe = Pipe { span: start, ..Pipe::default() };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.words.next_word();
            match token.kind {
                kind if kind == end => {
                    if pipe.commands.is_empty() {
                        return Err(hint::missing_value(token, context, &pipe));
                    }
                    check_stages(&pipe)?;
                    return Ok(pipe);
                }
                Word::Bool
                | Word::Character
                | Word::Complex
                | Word::Dot
                | Word::Field
                | Word::Identifier
                | Word::Number
                | Word::Nil
                | Word::Quoted
                | Word::Variable
                | Word::Open => {
                    self.words.back(token);
                    let command = self.command()?;
                    pipe.span = pipe.span.to(command.span);
                    pipe.commands.push(command);
                }
                _ => return Err(hint::unexpected(self.words, token, pipe.commands.last().map(|c| c.span))),
            }
        }
    }

    fn declarations(&mut self, pipe: &mut Pipe, context: Context) -> Result<(), Mistake> {
        loop {
            let variable = self.words.peek_word();
            if variable.kind != Word::Variable {
                return Ok(());
            }
            self.words.next_word();
            let after = self.words.next();
            let next = if after.kind == Word::Space { self.words.next_word() } else { after };
            let comma = next.kind == Word::Symbol && self.words.text(next.span) == b",";
            if !comma && !matches!(next.kind, Word::Assign | Word::Declare) {
                // An operand after all.
                self.words.back(next);
                if after.kind == Word::Space {
                    self.words.back(after);
                }
                self.words.back(variable);
                return Ok(());
            }
            pipe.assigns = next.kind == Word::Assign;
            let name = self.names.number(self.words.text(variable.span));
            pipe.declared.push((name, variable.span));
            self.names.scope.push(name, ());
            self.words.targets.push(variable);
            if !comma {
                return Ok(());
            }
            let follows = self.words.peek_word();
            if !context.range {
                return Err(Mistake::new(next.span, "only `range` can set two variables")
                    .help("set one variable in each `{{ … }}`"));
            }
            if pipe.declared.len() >= 2 {
                return Err(Mistake::new(next.span, "`range` sets at most two variables")
                    .help("write {{ range $index, $value := … }}"));
            }
            if !matches!(follows.kind, Word::Variable | Word::Right | Word::Close) {
                return Err(Mistake::new(follows.span, "here `range` needs a second variable")
                    .help("write {{ range $index, $value := … }}"));
            }
        }
    }

    fn command(&mut self) -> Result<Command, Mistake> {
        let mut operands: Vec<Operand> = Vec::new();
        loop {
            self.words.peek_word();
            if let Some(operand) = self.operand()? {
                operands.push(operand);
            }
            let token = self.words.next();
            match token.kind {
                Word::Space => {}
                Word::Right | Word::Close => {
                    self.words.back(token);
                    break;
                }
                Word::Pipe => break,
                _ => {
                    return Err(hint::unexpected(self.words, token, operands.last().map(|o| o.span)));
                }
            }
        }
        let mut operands = operands.into_iter();
        let Some(operand) = operands.next() else {
            let token = self.words.peek_word();
            return Err(Mistake::new(token.span, "there is nothing to print here"));
        };
        let arguments: Vec<Operand> = operands.collect();
        let span = arguments.last().map_or(operand.span, |last| operand.span.to(last.span));
        Ok(Command { operand, arguments, span })
    }

    fn operand(&mut self) -> Result<Option<Operand>, Mistake> {
        let Some(mut term) = self.term()? else { return Ok(None) };
        self.names.count(term.span)?;
        if self.words.peek().kind == Word::Field {
            term = self.chain(term)?;
        }
        Ok(Some(term))
    }

    /// The names after the dots behind a term.
    fn chain(&mut self, mut term: Operand) -> Result<Operand, Mistake> {
        let mut fields = Vec::new();
        let first = self.words.peek();
        while self.words.peek().kind == Word::Field {
            let token = self.words.next();
            self.names.count(token.span)?;
            fields.push(self.field(token));
        }
        let whole = fields.last().map_or(term.span, |last| term.span.to(last.span));
        term.kind = match term.kind {
            ValueType::Fields(mut before) => {
                before.extend(fields);
                ValueType::Fields(before)
            }
            ValueType::Variable(name, _) => ValueType::Variable(name, fields),
            ValueType::Dot => {
                return Err(Mistake::new(term.span.to(first.span), "there is one dot too many")
                    .help(format!("write {}", self.words.shown(first.span))));
            }
            ValueType::Nil | ValueType::Constant(_) | ValueType::Overflow => {
                let shown = self.words.shown(term.span);
                return Err(Mistake::new(first.span, format!("`{shown}` is a constant and has no fields"))
                    .help("put a space between two arguments"));
            }
            kind => ValueType::Chain(Box::new(Operand { kind, span: term.span }), fields),
        };
        term.span = whole;
        Ok(term)
    }

    fn field(&self, token: Token) -> Field {
        let name = self.words.text(token.span).get(1..).unwrap_or_default().to_vec();
        Field { name, span: token.span }
    }

    fn parenthesis(&mut self, open: Span) -> Result<Operand, Mistake> {
        if self.depth >= limits::TEMPLATE_DEPTH {
            return Err(hint::too_deep(open));
        }
        self.depth += 1;
        let context = Context { word: "a pair of parentheses", range: false };
        let pipe = self.pipeline(context, Word::Close)?;
        self.depth -= 1;
        let end = self.words.last.map_or(open, |last| last.span);
        Ok(Operand { kind: ValueType::Pipe(Box::new(pipe)), span: open.to(end) })
    }

    fn term(&mut self) -> Result<Option<Operand>, Mistake> {
        let token = self.words.next_word();
        match token.kind {
            Word::Open => self.parenthesis(token.span).map(Some),
            _ => self.plain_term(token),
        }
    }

    /// A term that holds no other. It is apart so that nested parentheses need little stack.
    fn plain_term(&mut self, token: Token) -> Result<Option<Operand>, Mistake> {
        let span = token.span;
        let text = self.words.text(span);
        let kind = match token.kind {
            Word::Identifier => match Function::named(text) {
                Some(function) => ValueType::Function(function),
                None => return Err(hint::unknown_function(self.words, span, text)),
            },
            Word::Dot => ValueType::Dot,
            Word::Nil => ValueType::Nil,
            Word::Variable => {
                let name = self.names.number(text);
                if self.names.scope.get(name).is_none() {
                    return Err(hint::unknown_variable(span, text));
                }
                ValueType::Variable(name, Vec::new())
            }
            Word::Field => ValueType::Fields(vec![self.field(token)]),
            Word::Bool => ValueType::Constant(Value::Bool(text == b"true")),
            Word::Character => match quote::character(text) {
                Character::Code(code) => ValueType::Constant(Value::Int(code)),
                Character::NotOne => return Err(hint::not_one_character(span, text)),
                Character::BadEscape => return Err(bad_escape(span)),
            },
            Word::Complex => match number::complex(text) {
                Some(value) => ValueType::Constant(value),
                None => return Err(hint::bad_number(span, text)),
            },
            Word::Number => match number::number(text) {
                Ok(Number::Value(value)) => ValueType::Constant(value),
                Ok(Number::Overflow) => ValueType::Overflow,
                Err(NumberError::TooLarge) => return Err(hint::large_number(span, text)),
                Err(NumberError::Malformed) => return Err(hint::bad_number(span, text)),
            },
            Word::Quoted => match quote::unquote(text) {
                Some(text) => ValueType::Constant(Value::Text(Text::from(text))),
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

fn bad_escape(span: Span) -> Mistake {
    Mistake::new(span, "a backslash in this constant starts no known escape")
        .help("write \\\\ for a backslash, or put the text in `backquotes`, where nothing is escaped")
}

/// Only the first command may be a plain value; the others are given what came before and must be functions.
fn check_stages(pipe: &Pipe) -> Result<(), Mistake> {
    for command in pipe.commands.iter().skip(1) {
        if matches!(
            command.operand.kind,
            ValueType::Constant(_) | ValueType::Overflow | ValueType::Dot | ValueType::Nil
        ) {
            return Err(Mistake::new(command.operand.span, "a value cannot stand after `|`")
                .help("after `|` comes a function, such as `default \"x\"`"));
        }
    }
    Ok(())
}

/// Whether the mistake is of a kind that an action without its `}}` typically leads to.
pub(super) fn smells_unclosed(token: Option<Token>) -> bool {
    token.is_some_and(|token| {
        matches!(token.kind, Word::Symbol | Word::Assign)
            || matches!(token.kind, Word::Broken(flaw) if flaw != Flaw::Number)
    })
}
