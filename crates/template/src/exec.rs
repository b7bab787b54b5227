//! Walks the tree and writes the text.
//!
//! Running blocks and template calls are kept in a list of frames, so that their depth needs memory only.

mod eval;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::slice::Iter;

use crate::Environment;
use crate::data::LookUp;
use crate::error::{FunctionError, TemplateError};
use crate::functions::{LimitedBuffer, print};
use crate::limits;
use crate::scope::DOLLAR;
use crate::span::{SourceMap, Span};
use crate::suggest;
use crate::tree::{Block, TemplateNode, TemplateSet};
use crate::value::{List, RecordValue, TemplateValue, TextValue};
use eval::{Failed, RenderState};

/// Renders a program, or returns all errors.
pub(crate) fn render(
    source: &[u8],
    program: &TemplateSet,
    environment: &Environment,
    data: Option<&dyn LookUp>,
) -> Result<(Vec<u8>, SourceMap), Vec<TemplateError>> {
    let mut texts = BTreeMap::new();
    for (name, value) in environment {
        texts.insert(TextValue::from(name.as_slice()), TextValue::from(value.as_slice()));
    }
    let state = RenderState::new(source, texts, data, &program.variables);
    let mut writer =
        Writer { program, state, frames: Vec::new(), calls: 0, text: Vec::new(), map: SourceMap::default() };
    writer.run();
    if writer.state.errors.is_empty() { Ok((writer.text, writer.map)) } else { Err(writer.state.errors) }
}

/// A running list of nodes, `range` or template call.
enum Frame<'t> {
    /// The remaining nodes of a list, and the variables to drop after them.
    List {
        nodes: Iter<'t, TemplateNode>,
        dot: TemplateValue,
        mark: usize,
    },
    Range {
        block: &'t Block,
        items: Items,
        next: usize,
        dot: TemplateValue,
        mark: usize,
        body: usize,
    },
    /// A called template.
    Call {
        mark: usize,
        base: usize,
    },
}

/// The elements of a `range`.
enum Items {
    Ints(List<i64>),
    Texts(List<TextValue>),
    Records(List<Rc<RecordValue>>),
    Entries(Vec<(TextValue, TextValue)>),
}

struct Writer<'t> {
    program: &'t TemplateSet,
    state: RenderState<'t>,
    frames: Vec<Frame<'t>>,
    /// The number of frames that are calls.
    calls: usize,
    text: Vec<u8>,
    map: SourceMap,
}

impl<'t> Writer<'t> {
    fn run(&mut self) {
        let dot = TemplateValue::Map(Rc::clone(&self.state.environment));
        let Some(main) = self.program.templates.get(&b""[..]) else { return };
        self.state.scope.push(DOLLAR, Some(dot.clone()));
        let mark = self.state.scope.mark();
        self.frames.push(Frame::List { nodes: main.iter(), dot, mark });
        while !self.state.stopped {
            match self.frames.last_mut() {
                None => return,
                Some(Frame::List { nodes, dot, mark }) => match nodes.next() {
                    Some(node) => {
                        let dot = dot.clone();
                        self.visit(node, &dot);
                    }
                    None => {
                        let mark = *mark;
                        self.state.scope.release(mark);
                        self.frames.pop();
                    }
                },
                Some(Frame::Range { .. }) => self.iterate(),
                Some(Frame::Call { mark, base }) => {
                    let (mark, base) = (*mark, *base);
                    self.state.scope.release(mark);
                    self.state.scope.restore(base);
                    self.calls -= 1;
                    self.frames.pop();
                }
            }
        }
    }

    fn visit(&mut self, node: &'t TemplateNode, dot: &TemplateValue) {
        match node {
            TemplateNode::Text(span) => self.copy(*span),
            TemplateNode::Action(pipe, span) => {
                if let Ok(value) = self.state.pipeline(dot, pipe)
                    && pipe.declared.is_empty()
                {
                    self.print(&value, *span);
                }
            }
            TemplateNode::If(branches, otherwise) => {
                let mark = self.state.scope.mark();
                for (pipe, body) in branches {
                    match self.state.pipeline(dot, pipe) {
                        Ok(value) if !value.truth() => {}
                        Ok(_) => return self.enter(body, dot.clone(), mark),
                        Err(Failed) => return self.state.scope.release(mark),
                    }
                }
                self.enter(otherwise, dot.clone(), mark);
            }
            TemplateNode::With(block) => {
                let mark = self.state.scope.mark();
                match self.state.pipeline(dot, &block.pipe) {
                    Ok(value) if value.truth() => self.enter(&block.body, value, mark),
                    Ok(_) => self.enter(&block.otherwise, dot.clone(), mark),
                    Err(Failed) => self.state.scope.release(mark),
                }
            }
            TemplateNode::Range(block) => self.range(block, dot),
            TemplateNode::Template { name, name_span, pipe } => {
                let Some(body) = self.program.templates.get(name) else {
                    let shown = String::from_utf8_lossy(name).into_owned();
                    let known =
                        self.program.templates.keys().filter_map(|name| std::str::from_utf8(name).ok());
                    let near = suggest::nearest(&shown, known.filter(|name| !name.is_empty()));
                    let help = match near {
                        Some(near) => format!("did you mean \"{near}\"?"),
                        None => format!("define it with {{{{ define \"{shown}\" }}}}…{{{{ end }}}}"),
                    };
                    let error = FunctionError::new(format!("unknown template \"{shown}\"")).help(help);
                    self.state.report(*name_span, error);
                    return;
                };
                if self.calls >= limits::CALLS {
                    let error = FunctionError::fatal(format!(
                        "template calls are nested more than {} deep",
                        limits::CALLS
                    ))
                    .help("a template that calls itself needs an `if` that ends the recursion");
                    self.state.report(*name_span, error);
                    return;
                }
                let dot = match pipe {
                    Some(pipe) => match self.state.pipeline(dot, pipe) {
                        Ok(value) => value,
                        Err(Failed) => return,
                    },
                    None => TemplateValue::Nil,
                };
                self.calls += 1;
                let mark = self.state.scope.mark();
                let base = self.state.scope.hide();
                self.state.scope.push(DOLLAR, Some(dot.clone()));
                self.frames.push(Frame::Call { mark, base });
                self.enter(body, dot, mark + 1);
            }
            TemplateNode::Break => {
                while let Some(frame) = self.frames.pop() {
                    if let Frame::Range { mark, .. } = frame {
                        self.state.scope.release(mark);
                        return;
                    }
                }
            }
            TemplateNode::Continue => {
                while self.frames.last().is_some_and(|frame| !matches!(frame, Frame::Range { .. })) {
                    self.frames.pop();
                }
            }
        }
    }

    fn enter(&mut self, nodes: &'t [TemplateNode], dot: TemplateValue, mark: usize) {
        if let Err(error) = self.state.budget.step(1) {
            let span = nodes.iter().find_map(span_of).unwrap_or_default();
            self.state.report(span, error);
        }
        self.frames.push(Frame::List { nodes: nodes.iter(), dot, mark });
    }

    fn range(&mut self, block: &'t Block, dot: &TemplateValue) {
        let mark = self.state.scope.mark();
        let Ok(items) = self.state.pipeline(dot, &block.pipe) else {
            return self.state.scope.release(mark);
        };
        let items = match items {
            TemplateValue::Ints(list) => Items::Ints(list),
            TemplateValue::Texts(list) => Items::Texts(list),
            TemplateValue::Records(list) => Items::Records(list),
            TemplateValue::Map(map) => {
                if let Err(error) = self.state.budget.bytes(map.len() * size_of::<(TextValue, TextValue)>()) {
                    self.state.report(block.pipe.span, error);
                    return;
                }
                Items::Entries(map.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
            }
            // nil has no elements.
            TemplateValue::Nil => Items::Entries(Vec::new()),
            other => {
                self.not_a_list(block, &other);
                return self.state.scope.release(mark);
            }
        };
        let body = self.state.scope.mark();
        self.frames.push(Frame::Range { block, items, next: 0, dot: dot.clone(), mark, body });
    }

    fn not_a_list(&mut self, block: &Block, value: &TemplateValue) {
        let error = FunctionError::new(format!("`range` needs a list, not {}", value.described()));
        let error = match value {
            TemplateValue::Text(_) => error.help("convert it to a list with `split`"),
            TemplateValue::Int(_) => error.help("convert it to a list with `loop`"),
            _ => error,
        };
        let span = block.pipe.commands.last().map_or(block.pipe.span, |command| command.span);
        self.state.report(span, error);
    }

    /// Starts the next iteration of the innermost `range`.
    fn iterate(&mut self) {
        let Some(Frame::Range { block, items, next, dot, mark, body }) = self.frames.last_mut() else {
            return;
        };
        let block: &'t Block = block;
        let (mark, body, index) = (*mark, *body, *next);
        self.state.scope.release(body);
        let element = match items {
            Items::Ints(list) => {
                list.items().get(index).map(|item| (number(index), TemplateValue::Int(*item)))
            }
            Items::Texts(list) => {
                list.items().get(index).map(|item| (number(index), TemplateValue::Text(item.clone())))
            }
            Items::Records(list) => {
                list.items().get(index).map(|item| (number(index), TemplateValue::Record(Rc::clone(item))))
            }
            Items::Entries(list) => list
                .get(index)
                .map(|(name, value)| (TemplateValue::Text(name.clone()), TemplateValue::Text(value.clone()))),
        };
        *next += 1;
        let dot = dot.clone();
        let Some((key, value)) = element else {
            self.frames.pop();
            if index == 0 {
                self.enter(&block.otherwise, dot, mark);
            } else {
                self.state.scope.release(mark);
            }
            return;
        };
        // Go 1.19 sets the variables declared last, regardless of their names. With `:=` these are the variables of the loop;
        // with `=` they can be others.
        match block.pipe.declared.len() {
            0 => {}
            1 => self.state.scope.set_top(1, Some(value.clone())),
            _ => {
                self.state.scope.set_top(1, Some(value.clone()));
                self.state.scope.set_top(2, Some(key));
            }
        }
        self.enter(&block.body, value, body);
    }

    fn has_space(&mut self, more: usize, span: Span) -> bool {
        let size = self.text.len().saturating_add(more);
        let error = if size > limits::RENDERED_BYTES {
            let megabytes = limits::RENDERED_BYTES / (1024 * 1024);
            Some(
                FunctionError::fatal(format!("the rendered text is larger than {megabytes} MiB"))
                    .help("look for a `range` over a long list"),
            )
        } else {
            self.state.budget.step(1).and_then(|()| self.state.budget.bytes(16)).err()
        };
        match error {
            Some(error) => {
                self.state.report(span, error);
                false
            }
            None => true,
        }
    }

    fn copy(&mut self, span: Span) {
        let bytes = self.state.source.get(span.range()).unwrap_or_default();
        if self.has_space(bytes.len(), span) {
            self.map.copied(self.text.len(), span);
            self.text.extend_from_slice(bytes);
        }
    }

    fn print(&mut self, value: &TemplateValue, span: Span) {
        let made;
        let bytes: &[u8] = match value {
            TemplateValue::Nil => b"<no value>",
            TemplateValue::Text(text) => text,
            other => {
                let mut out = LimitedBuffer::new(limits::RENDERED_BYTES);
                print(&mut out, std::slice::from_ref(other));
                made = out.finish().unwrap_or_else(|| vec![b' '; limits::RENDERED_BYTES + 1]);
                if let Err(error) = self.state.budget.bytes(made.len()) {
                    self.state.report(span, error);
                    return;
                }
                &made
            }
        };
        if bytes.is_empty() {
            self.map.silent(self.text.len(), span);
        } else if self.has_space(bytes.len(), span) {
            self.map.produced(self.text.len(), span);
            self.text.extend_from_slice(bytes);
        }
    }
}

fn number(index: usize) -> TemplateValue {
    TemplateValue::Int(i64::try_from(index).unwrap_or(i64::MAX))
}

/// A range of the source for error messages.
fn span_of(node: &TemplateNode) -> Option<Span> {
    match node {
        TemplateNode::Text(span)
        | TemplateNode::Action(_, span)
        | TemplateNode::Template { name_span: span, .. } => Some(*span),
        TemplateNode::If(branches, _) => branches.first().map(|(pipe, _)| pipe.span),
        TemplateNode::Range(block) | TemplateNode::With(block) => Some(block.pipe.span),
        TemplateNode::Break | TemplateNode::Continue => None,
    }
}
