//! Splits the source into text and actions, and builds the blocks.
//!
//! Blocks that are open are kept on a stack of their own, not on the machine's, so that a broken action can be
//! left behind at its `}}` with the blocks around it intact, and deep nesting costs only memory.

use super::hint;
use super::letters;
use super::lex::{self, Flaw, Keyword, Token, ValueType as Word};
use super::pipe::{self, Context, Mistake, Names, Words};
use super::quote;
use super::tree::{Block, Node, Pipe, Program};
use super::{Stage, TemplateError};
use crate::limits;
use crate::span::Span;
use memchr::memmem;
use std::collections::HashMap;

/// Parses the source, or gives all the mistakes in it.
pub(super) fn parse(source: &[u8]) -> Result<Program, Vec<TemplateError>> {
    let mut parser = Parser {
        source,
        names: Names::new(),
        errors: Vec::new(),
        open: Vec::new(),
        list: Vec::new(),
        templates: Vec::new(),
        defined: HashMap::new(),
        ranges: 0,
        stray_else: false,
    };
    parser.text_and_actions();
    let main = std::mem::take(&mut parser.list);
    parser.define(Vec::new(), Span::at(0), main);
    if parser.errors.is_empty() {
        Ok(Program { templates: parser.templates.into_iter().collect(), variables: parser.names.variables })
    } else {
        parser.errors.sort_by_key(|error| error.span);
        Err(parser.errors)
    }
}

/// A block whose `{{ end }}` is still to come.
struct Open {
    keyword: Keyword,
    /// The opening action.
    span: Span,
    /// What was read before it in the block around it.
    before: Vec<Node>,
    /// The pipeline of the branch that is being read.
    pipe: Pipe,
    /// The branches that are complete.
    branches: Vec<(Pipe, Vec<Node>)>,
    /// The `{{ else }}` that has been seen.
    otherwise: Option<Span>,
    /// Where the variables of the block begin.
    mark: usize,
    /// For `define` and `block`: the state of the text around them.
    outside: Option<Outside>,
}

struct Outside {
    name: Option<(Vec<u8>, Span)>,
    floor: usize,
    ranges: usize,
}

struct Parser<'s> {
    source: &'s [u8],
    names: Names,
    errors: Vec<TemplateError>,
    open: Vec<Open>,
    list: Vec<Node>,
    /// In the order in which they are defined.
    templates: Vec<(Vec<u8>, Vec<Node>)>,
    /// Where each of them is.
    defined: HashMap<Vec<u8>, u32>,
    /// How many `range` blocks are open in this template.
    ranges: usize,
    /// An `else` without a block was reported; the `end` that goes with it is no second mistake.
    stray_else: bool,
}

impl<'s> Parser<'s> {
    fn report(&mut self, mistake: Mistake) {
        self.errors.push(TemplateError {
            stage: Stage::Parse,
            span: mistake.span,
            message: mistake.message,
            help: mistake.help,
        });
    }

    fn full(&self) -> bool {
        self.errors.len() >= limits::ERRORS
    }

    fn from(&self, position: usize) -> &'s [u8] {
        self.source.get(position..).unwrap_or_default()
    }

    fn text_and_actions(&mut self) {
        let finder = memmem::Finder::new(b"{{");
        let mut position = 0;
        while !self.full() {
            let Some(length) = finder.find(self.from(position)) else {
                self.text(position, self.source.len());
                return self.finish();
            };
            let open = position + length;
            let inside = open + 2;
            let trims = lex::trims_left(self.from(inside));
            let mut end = open;
            if trims {
                let before = self.source.get(position..open).unwrap_or_default();
                end = before
                    .iter()
                    .rposition(|&byte| !lex::is_space(byte))
                    .map_or(position, |at| position + at + 1);
            }
            self.text(position, end);
            let inside = if trims { inside + 2 } else { inside };
            let next = if self.from(inside).starts_with(b"/*") {
                self.comment(open, inside)
            } else {
                self.action(open, inside)
            };
            match next {
                Some(next) => position = next,
                None => return,
            }
        }
    }

    fn text(&mut self, start: usize, end: usize) {
        if start < end {
            self.list.push(Node::Text(Span::new(start, end)));
        }
    }

    /// The place after an action that ends at `end`.
    fn after(&self, end: usize, trims: bool) -> usize {
        if !trims {
            return end;
        }
        let rest = self.from(end);
        end + rest.iter().position(|&byte| !lex::is_space(byte)).unwrap_or(rest.len())
    }

    fn comment(&mut self, open: usize, inside: usize) -> Option<usize> {
        let Some(length) = memmem::find(self.from(inside + 2), b"*/") else {
            self.report(
                Mistake::new(Span::new(open, inside + 2), "this comment is not closed").help("write `*/}}`"),
            );
            return None;
        };
        let end = inside + 2 + length + 2;
        match lex::closing(self.from(end)) {
            Some((width, trims)) => Some(self.after(end + width, trims)),
            None => {
                self.report(
                    Mistake::new(Span::new(inside, end), "a comment must fill its action")
                        .help("write `}}` or ` -}}` right after `*/`, and the rest in another {{ … }}"),
                );
                self.resume(open, end)
            }
        }
    }

    /// Where to go on after a mistake at `position` in the action at `open`.
    fn resume(&self, open: usize, position: usize) -> Option<usize> {
        let position = position.max(open + 2);
        let close = memmem::find(self.from(position), b"}}").map(|length| position + length);
        match (close, self.reopened(position)) {
            (Some(close), Some(next)) if next < close => Some(next),
            (None, Some(next)) => Some(next),
            (Some(close), _) => {
                let end = close + 2;
                let before = self.source.get(..close).unwrap_or_default();
                Some(self.after(end, before.ends_with(b" -")))
            }
            (None, None) => None,
        }
    }

    /// Where the next action begins.
    fn reopened(&self, position: usize) -> Option<usize> {
        memmem::find(self.from(position), b"{{").map(|length| position + length)
    }

    /// Whether nothing closes the action at `position` before another one begins or the text ends.
    fn never_closed(&self, position: usize) -> bool {
        let close = memmem::find(self.from(position), b"}}").map(|length| position + length);
        match (close, self.reopened(position)) {
            (Some(close), Some(next)) => next < close,
            (close, _) => close.is_none(),
        }
    }

    fn action(&mut self, open: usize, inside: usize) -> Option<usize> {
        let mut words = Words::new(self.source, inside);
        let result = self.statement(&mut words, open);
        if let Err(mistake) = result {
            for target in std::mem::take(&mut words.targets) {
                // The declaration is broken, but the variable was meant: its uses are no mistakes.
                self.names.declare(self.source.get(target.span.range()).unwrap_or_default());
            }
            let at = (mistake.span.start as usize).max(inside);
            let last = words.last;
            if words.lexer.closed.is_none() && pipe::smells_unclosed(last) && self.never_closed(at) {
                self.report(hint::unclosed_at(self.source, open));
            } else {
                self.report(mistake);
            }
            if self.open.len() > limits::TEMPLATE_DEPTH {
                // Going on would build a tree too deep even to take down, and say the same again and again.
                self.open.clear();
                return None;
            }
            if let (Some(trims), position) = (words.lexer.closed, words.lexer.position()) {
                return Some(self.after(position, trims));
            }
            let next = self.resume(open, at);
            if next.is_none() {
                // Nothing can be said about the blocks any more.
                self.open.clear();
            }
            return next;
        }
        Some(self.after(words.lexer.position(), words.lexer.closed == Some(true)))
    }

    fn statement(&mut self, words: &mut Words<'s>, open: usize) -> Result<(), Mistake> {
        let first = words.next_word();
        self.names.count(first.span)?;
        let Word::Keyword(keyword) = first.kind else {
            words.back(first);
            let context = Context { word: "this action", range: false };
            let pipe = pipe::pipeline(words, &mut self.names, context)?;
            let span = Span::new(open, words.lexer.position());
            self.list.push(Node::Action(pipe, span));
            return Ok(());
        };
        match keyword {
            Keyword::If | Keyword::Range | Keyword::With => self.opens(words, keyword, open),
            Keyword::Define => self.defines(words, first, open),
            Keyword::Block => self.blocks(words, open),
            Keyword::Template => self.calls(words),
            Keyword::Else => self.alternative(words, first),
            Keyword::End => {
                let end = words.next_word();
                let closed = self.close(first);
                ends(words, end, keyword)?;
                closed
            }
            Keyword::Break | Keyword::Continue => {
                let end = words.next_word();
                ends(words, end, keyword)?;
                if self.ranges == 0 {
                    return Err(Mistake::new(
                        first.span,
                        format!("`{}` stands in no `range`", keyword.word()),
                    )
                    .help("it belongs between {{ range … }} and its {{ end }} or {{ else }}"));
                }
                self.list.push(if keyword == Keyword::Break { Node::Break } else { Node::Continue });
                Ok(())
            }
        }
    }

    fn push(&mut self, keyword: Keyword, open: usize, mark: usize, outside: Option<Outside>) {
        self.open.push(Open {
            keyword,
            span: Span::new(open, open + 2),
            before: std::mem::take(&mut self.list),
            pipe: Pipe::default(),
            branches: Vec::new(),
            otherwise: None,
            mark,
            outside,
        });
    }

    /// Fills in what is known of the block only after its opening action was read.
    fn opened(&mut self, words: &Words<'s>, pipe: Pipe) -> Result<(), Mistake> {
        let deep = self.open.len() > limits::TEMPLATE_DEPTH;
        if let Some(block) = self.open.last_mut() {
            block.span.end = Span::at(words.lexer.position()).end;
            block.pipe = pipe;
            if deep {
                let span = block.span;
                return Err(Mistake::new(
                    span,
                    format!("blocks nest deeper than {}", limits::TEMPLATE_DEPTH),
                )
                .help("use `else if`, or `define` parts of it as templates"));
            }
        }
        Ok(())
    }

    fn opens(&mut self, words: &mut Words<'s>, keyword: Keyword, open: usize) -> Result<(), Mistake> {
        let mark = self.names.scope.mark();
        // The block counts as open also when its pipeline is broken.
        self.push(keyword, open, mark, None);
        if keyword == Keyword::Range {
            self.ranges += 1;
        }
        let word = match keyword {
            Keyword::If => "`if`",
            Keyword::Range => "`range`",
            _ => "`with`",
        };
        let pipe = pipe::pipeline(words, &mut self.names, Context { word, range: keyword == Keyword::Range });
        if let Some(block) = self.open.last_mut() {
            block.span.end = Span::at(words.lexer.position()).end;
        }
        self.opened(words, pipe?)
    }

    /// Enters a body that sees nothing of what is around it.
    fn isolate(&mut self, name: Option<(Vec<u8>, Span)>) -> Outside {
        let floor = self.names.scope.conceal();
        let ranges = std::mem::take(&mut self.ranges);
        Outside { name, floor, ranges }
    }

    fn defines(&mut self, words: &mut Words<'s>, first: Token, open: usize) -> Result<(), Mistake> {
        let outermost = self.open.is_empty();
        let mark = self.names.scope.mark();
        let outside = self.isolate(None);
        self.push(Keyword::Define, open, mark, Some(outside));
        self.names.scope.push(super::scope::DOLLAR, ());
        let name = template_name(words, "define")?;
        if let Some(outside) = self.open.last_mut().and_then(|block| block.outside.as_mut()) {
            outside.name = Some(name);
        }
        let end = words.next_word();
        ends(words, end, Keyword::Define)?;
        if !outermost {
            return Err(Mistake::new(first.span, "`define` cannot stand inside another block")
                .help("a template is defined outside all other blocks"));
        }
        self.opened(words, Pipe::default())
    }

    fn blocks(&mut self, words: &mut Words<'s>, open: usize) -> Result<(), Mistake> {
        let named = template_name(words, "block");
        let pipe = match &named {
            Ok(_) => pipe::pipeline(words, &mut self.names, Context { word: "`block`", range: false }),
            Err(_) => Ok(Pipe::default()),
        };
        // What the pipeline declares persists after the block.
        let mark = self.names.scope.mark();
        let outside = self.isolate(named.as_ref().ok().cloned());
        self.push(Keyword::Block, open, mark, Some(outside));
        self.names.scope.push(super::scope::DOLLAR, ());
        named?;
        self.opened(words, pipe?)
    }

    fn calls(&mut self, words: &mut Words<'s>) -> Result<(), Mistake> {
        let (name, name_span) = template_name(words, "template")?;
        let next = words.next_word();
        let pipe = if next.kind == Word::Right {
            None
        } else {
            words.back(next);
            Some(pipe::pipeline(words, &mut self.names, Context { word: "`template`", range: false })?)
        };
        self.list.push(Node::Template { name, name_span, pipe });
        Ok(())
    }

    fn alternative(&mut self, words: &mut Words<'s>, first: Token) -> Result<(), Mistake> {
        let next = words.next_word();
        let chained = next.kind == Word::Keyword(Keyword::If);
        let list = std::mem::take(&mut self.list);
        let Some(block) = self.open.last_mut() else {
            self.list = list;
            self.stray_else = true;
            return Err(Mistake::new(first.span, "`else` belongs to no block")
                .help("it stands between {{ if … }} and its {{ end }}"));
        };
        if !matches!(block.keyword, Keyword::If | Keyword::Range | Keyword::With) {
            self.list = list;
            return Err(Mistake::new(first.span, format!("`{}` has no `else`", block.keyword.word())));
        }
        if block.otherwise.is_some() {
            self.list = list;
            return Err(Mistake::new(first.span, "this block already has its `else`")
                .help("only one {{ else }} can stand before {{ end }}; more choices go in {{ else if … }}"));
        }
        block.branches.push((std::mem::take(&mut block.pipe), list));
        if block.keyword == Keyword::Range {
            self.ranges = self.ranges.saturating_sub(1);
        }
        if chained && block.keyword == Keyword::If {
            // A chain of `else if` is one block here, so its length does not nest.
            let pipe = pipe::pipeline(words, &mut self.names, Context { word: "`if`", range: false });
            let pipe = pipe?;
            if let Some(block) = self.open.last_mut() {
                block.pipe = pipe;
            }
            return Ok(());
        }
        block.otherwise = Some(first.span);
        if chained {
            let word = block.keyword.word();
            return Err(Mistake::new(next.span, format!("`{word}` has no `else if`"))
                .help("write {{ else }}{{ if … }}…{{ end }}{{ end }}"));
        }
        ends(words, next, Keyword::Else)
    }

    fn close(&mut self, first: Token) -> Result<(), Mistake> {
        let list = std::mem::take(&mut self.list);
        let Some(mut block) = self.open.pop() else {
            self.list = list;
            if std::mem::take(&mut self.stray_else) {
                return Ok(());
            }
            return Err(Mistake::new(first.span, "`end` closes nothing")
                .help("delete it, or write the {{ if … }}, {{ range … }} or {{ with … }} it belongs to"));
        };
        self.names.scope.release(block.mark);
        self.list = std::mem::take(&mut block.before);
        if let Some(outside) = block.outside {
            self.names.scope.reveal(outside.floor);
            self.ranges = outside.ranges;
            let Some((name, span)) = outside.name else { return Ok(()) };
            if block.keyword == Keyword::Block {
                let pipe = Some(block.pipe);
                self.list.push(Node::Template { name: name.clone(), name_span: span, pipe });
            }
            self.define(name, span, list);
            return Ok(());
        }
        if block.keyword == Keyword::Range && block.otherwise.is_none() {
            self.ranges = self.ranges.saturating_sub(1);
        }
        let otherwise = if block.otherwise.is_some() {
            list
        } else {
            block.branches.push((block.pipe, list));
            Vec::new()
        };
        if block.keyword == Keyword::If {
            self.list.push(Node::If(block.branches, otherwise));
        } else if let Some((pipe, body)) = block.branches.pop() {
            let inner = Box::new(Block { pipe, body, otherwise });
            self.list.push(if block.keyword == Keyword::Range {
                Node::Range(inner)
            } else {
                Node::With(inner)
            });
        }
        Ok(())
    }

    /// Adds a template. A second one of the same name is allowed only if one of them is empty, which then gives way.
    fn define(&mut self, name: Vec<u8>, span: Span, body: Vec<Node>) {
        let empty = |body: &[Node]| body.iter().all(|node| is_blank(self.source, node));
        let next = u32::try_from(self.templates.len()).unwrap_or(u32::MAX);
        let place = self.defined.get(&name).copied().unwrap_or(next);
        match self.templates.get_mut(place as usize) {
            Some((_, present)) if !empty(present) => {
                if !empty(&body) {
                    let shown = String::from_utf8_lossy(&name).into_owned();
                    self.report(
                        Mistake::new(span, format!("the template \"{shown}\" is defined twice"))
                            .help("give one of them another name"),
                    );
                }
            }
            Some((_, present)) => *present = body,
            None => {
                self.defined.insert(name.clone(), next);
                self.templates.push((name, body));
            }
        }
    }

    /// Reports the blocks that the text leaves open.
    fn finish(&mut self) {
        for block in std::mem::take(&mut self.open).into_iter().rev() {
            if self.full() {
                return;
            }
            let word = block.keyword.word();
            self.report(
                Mistake::new(block.span, format!("this `{word}` has no {{{{ end }}}}"))
                    .help(format!("write {{{{ end }}}} where the `{word}` is to stop")),
            );
        }
    }
}

fn is_blank(source: &[u8], node: &Node) -> bool {
    let Node::Text(span) = node else { return false };
    let (start, end) = letters::trimmed(source.get(span.range()).unwrap_or_default());
    start == end
}

/// Requires that nothing follows in the action.
fn ends(words: &Words<'_>, token: Token, keyword: Keyword) -> Result<(), Mistake> {
    match token.kind {
        Word::Right => Ok(()),
        Word::Broken(Flaw::Unclosed) => Err(hint::unexpected(words, token, None)),
        _ => Err(Mistake::new(token.span, format!("nothing can follow `{}` here", keyword.word()))
            .help(format!("end the action: {{{{ {} }}}}", keyword.word()))),
    }
}

fn template_name(words: &mut Words<'_>, keyword: &str) -> Result<(Vec<u8>, Span), Mistake> {
    let token = words.next_word();
    if token.kind != Word::Quoted {
        if matches!(token.kind, Word::Broken(_)) {
            return Err(hint::unexpected(words, token, None));
        }
        return Err(Mistake::new(token.span, format!("`{keyword}` needs the name of a template"))
            .help(format!("write {{{{ {keyword} \"name\" }}}}, in double quotes")));
    }
    match quote::unquote(words.text(token.span)) {
        Some(name) => Ok((name, token.span)),
        None => Err(Mistake::new(token.span, "a backslash in this name starts no known escape")),
    }
}
