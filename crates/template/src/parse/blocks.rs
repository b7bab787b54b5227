//! Keywords and blocks: `if`, `range`, `with`, `define`, `block`, `template`, `else`, `end`, `break` and `continue`.

use crate::parse::lexer::{ActionKeyword, ActionToken, ActionTokenKind, LexError};
use crate::parse::words::{ActionWords, ParseError, PipelinePosition};
use crate::parse::{OpenBlock, Outer, Parser, literal, messages, pipeline};
use crate::scope::DOLLAR;
use crate::span::Span;
use crate::tree::{Block, Pipeline, TemplateNode};
use crate::{limits, utf8};

impl<'s> Parser<'s> {
    pub(super) fn statement(&mut self, words: &mut ActionWords<'s>, open: usize) -> Result<(), ParseError> {
        let first = words.next_word();
        self.names.count(first.span)?;
        let ActionTokenKind::Keyword(keyword) = first.kind else {
            words.back(first);
            let context = PipelinePosition { word: "this action", range: false };
            let pipe = pipeline::pipeline(words, &mut self.names, context)?;
            let span = Span::new(open, words.lexer.position());
            self.list.push(TemplateNode::Action(pipe, span));
            return Ok(());
        };
        match keyword {
            ActionKeyword::If | ActionKeyword::Range | ActionKeyword::With => {
                self.opens(words, keyword, open)
            }
            ActionKeyword::Define => self.defines(words, first, open),
            ActionKeyword::Block => self.blocks(words, open),
            ActionKeyword::Template => self.calls(words),
            ActionKeyword::Else => self.alternative(words, first),
            ActionKeyword::End => {
                let end = words.next_word();
                let closed = self.close(first);
                ends(words, end, keyword)?;
                closed
            }
            ActionKeyword::Break | ActionKeyword::Continue => {
                let end = words.next_word();
                ends(words, end, keyword)?;
                if self.ranges == 0 {
                    return Err(ParseError::new(
                        first.span,
                        format!("`{}` outside of a `range`", keyword.word()),
                    )
                    .help("write it between {{ range … }} and its {{ end }} or {{ else }}"));
                }
                self.list.push(if keyword == ActionKeyword::Break {
                    TemplateNode::Break
                } else {
                    TemplateNode::Continue
                });
                Ok(())
            }
        }
    }

    fn push(&mut self, keyword: ActionKeyword, open: usize, mark: usize, outer: Option<Outer>) {
        self.open.push(OpenBlock {
            keyword,
            span: Span::new(open, open + 2),
            before: std::mem::take(&mut self.list),
            pipe: Pipeline::default(),
            branches: Vec::new(),
            otherwise: None,
            mark,
            outer,
        });
    }

    /// Completes the block after its opening action has been read.
    fn opened(&mut self, words: &ActionWords<'s>, pipe: Pipeline) -> Result<(), ParseError> {
        let deep = self.open.len() > limits::DEPTH;
        if let Some(block) = self.open.last_mut() {
            block.span.end = Span::at(words.lexer.position()).end;
            block.pipe = pipe;
            if deep {
                let span = block.span;
                return Err(ParseError::new(
                    span,
                    format!("blocks are nested more than {} deep", limits::DEPTH),
                )
                .help("use `else if`, or move parts into templates with `define`"));
            }
        }
        Ok(())
    }

    fn opens(
        &mut self,
        words: &mut ActionWords<'s>,
        keyword: ActionKeyword,
        open: usize,
    ) -> Result<(), ParseError> {
        let mark = self.names.scope.mark();
        // The block is open even if its pipeline is invalid.
        self.push(keyword, open, mark, None);
        if keyword == ActionKeyword::Range {
            self.ranges += 1;
        }
        let word = match keyword {
            ActionKeyword::If => "`if`",
            ActionKeyword::Range => "`range`",
            _ => "`with`",
        };
        let pipe = pipeline::pipeline(
            words,
            &mut self.names,
            PipelinePosition { word, range: keyword == ActionKeyword::Range },
        );
        if let Some(block) = self.open.last_mut() {
            block.span.end = Span::at(words.lexer.position()).end;
        }
        self.opened(words, pipe?)
    }

    /// Starts a template, which cannot see the variables around it.
    fn isolate(&mut self, name: Option<(Vec<u8>, Span)>) -> Outer {
        let base = self.names.scope.hide();
        let ranges = std::mem::take(&mut self.ranges);
        Outer { name, base, ranges }
    }

    fn defines(
        &mut self,
        words: &mut ActionWords<'s>,
        first: ActionToken,
        open: usize,
    ) -> Result<(), ParseError> {
        let outermost = self.open.is_empty();
        let mark = self.names.scope.mark();
        let outer = self.isolate(None);
        self.push(ActionKeyword::Define, open, mark, Some(outer));
        self.names.scope.push(DOLLAR, ());
        let name = template_name(words, "define")?;
        if let Some(outer) = self.open.last_mut().and_then(|block| block.outer.as_mut()) {
            outer.name = Some(name);
        }
        let end = words.next_word();
        ends(words, end, ActionKeyword::Define)?;
        if !outermost {
            return Err(ParseError::new(first.span, "`define` inside another block")
                .help("move the definition out of all other blocks"));
        }
        self.opened(words, Pipeline::default())
    }

    fn blocks(&mut self, words: &mut ActionWords<'s>, open: usize) -> Result<(), ParseError> {
        let named = template_name(words, "block");
        let pipe = match &named {
            Ok(_) => {
                pipeline::pipeline(words, &mut self.names, PipelinePosition { word: "`block`", range: false })
            }
            Err(_) => Ok(Pipeline::default()),
        };
        // The variables of the pipeline stay in scope after the block.
        let mark = self.names.scope.mark();
        let outer = self.isolate(named.as_ref().ok().cloned());
        self.push(ActionKeyword::Block, open, mark, Some(outer));
        self.names.scope.push(DOLLAR, ());
        named?;
        self.opened(words, pipe?)
    }

    fn calls(&mut self, words: &mut ActionWords<'s>) -> Result<(), ParseError> {
        let (name, name_span) = template_name(words, "template")?;
        let next = words.next_word();
        let pipe = if next.kind == ActionTokenKind::Right {
            None
        } else {
            words.back(next);
            Some(pipeline::pipeline(
                words,
                &mut self.names,
                PipelinePosition { word: "`template`", range: false },
            )?)
        };
        self.list.push(TemplateNode::Template { name, name_span, pipe });
        Ok(())
    }

    fn alternative(&mut self, words: &mut ActionWords<'s>, first: ActionToken) -> Result<(), ParseError> {
        let next = words.next_word();
        let chained = next.kind == ActionTokenKind::Keyword(ActionKeyword::If);
        let list = std::mem::take(&mut self.list);
        let Some(block) = self.open.last_mut() else {
            self.list = list;
            self.stray_else = true;
            return Err(ParseError::new(first.span, "`else` outside of a block")
                .help("write it between {{ if … }} and its {{ end }}"));
        };
        if !matches!(block.keyword, ActionKeyword::If | ActionKeyword::Range | ActionKeyword::With) {
            self.list = list;
            return Err(ParseError::new(
                first.span,
                format!("`{}` cannot have an `else`", block.keyword.word()),
            ));
        }
        if block.otherwise.is_some() {
            self.list = list;
            return Err(ParseError::new(first.span, "this block already has an `else`")
                .help("only one {{ else }} is allowed; use {{ else if … }} for more branches"));
        }
        block.branches.push((std::mem::take(&mut block.pipe), list));
        if block.keyword == ActionKeyword::Range {
            self.ranges = self.ranges.saturating_sub(1);
        }
        if chained && block.keyword == ActionKeyword::If {
            // A chain of `else if` is one block, so that it does not count as nesting.
            let pipe =
                pipeline::pipeline(words, &mut self.names, PipelinePosition { word: "`if`", range: false });
            let pipe = pipe?;
            if let Some(block) = self.open.last_mut() {
                block.pipe = pipe;
            }
            return Ok(());
        }
        block.otherwise = Some(first.span);
        if chained {
            let word = block.keyword.word();
            return Err(ParseError::new(next.span, format!("`{word}` cannot have an `else if`"))
                .help("write {{ else }}{{ if … }}…{{ end }}{{ end }}"));
        }
        ends(words, next, ActionKeyword::Else)
    }

    fn close(&mut self, first: ActionToken) -> Result<(), ParseError> {
        let list = std::mem::take(&mut self.list);
        let Some(mut block) = self.open.pop() else {
            self.list = list;
            if std::mem::take(&mut self.stray_else) {
                return Ok(());
            }
            return Err(ParseError::new(first.span, "`end` without a block")
                .help("remove it, or add the {{ if … }}, {{ range … }} or {{ with … }} that it ends"));
        };
        self.names.scope.release(block.mark);
        self.list = std::mem::take(&mut block.before);
        if let Some(outer) = block.outer {
            self.names.scope.restore(outer.base);
            self.ranges = outer.ranges;
            let Some((name, span)) = outer.name else { return Ok(()) };
            if block.keyword == ActionKeyword::Block {
                let pipe = Some(block.pipe);
                self.list.push(TemplateNode::Template { name: name.clone(), name_span: span, pipe });
            }
            self.define(name, span, list);
            return Ok(());
        }
        if block.keyword == ActionKeyword::Range && block.otherwise.is_none() {
            self.ranges = self.ranges.saturating_sub(1);
        }
        let otherwise = if block.otherwise.is_some() {
            list
        } else {
            block.branches.push((block.pipe, list));
            Vec::new()
        };
        if block.keyword == ActionKeyword::If {
            self.list.push(TemplateNode::If(block.branches, otherwise));
        } else if let Some((pipe, body)) = block.branches.pop() {
            let inner = Box::new(Block { pipe, body, otherwise });
            self.list.push(if block.keyword == ActionKeyword::Range {
                TemplateNode::Range(inner)
            } else {
                TemplateNode::With(inner)
            });
        }
        Ok(())
    }

    /// Adds a template. Two templates of the same name are allowed if one of them is empty; the other one counts.
    pub(super) fn define(&mut self, name: Vec<u8>, span: Span, body: Vec<TemplateNode>) {
        let empty = |body: &[TemplateNode]| body.iter().all(|node| is_blank(self.source, node));
        let next = u32::try_from(self.templates.len()).unwrap_or(u32::MAX);
        let place = self.defined.get(&name).copied().unwrap_or(next);
        match self.templates.get_mut(place as usize) {
            Some((_, present)) if !empty(present) => {
                if !empty(&body) {
                    let shown = String::from_utf8_lossy(&name).into_owned();
                    self.report(
                        ParseError::new(span, format!("the template \"{shown}\" is defined twice"))
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
}

fn is_blank(source: &[u8], node: &TemplateNode) -> bool {
    let TemplateNode::Text(span) = node else { return false };
    let (start, end) = utf8::trimmed(source.get(span.range()).unwrap_or_default());
    start == end
}

/// Reports an error unless the action ends here.
fn ends(words: &ActionWords<'_>, token: ActionToken, keyword: ActionKeyword) -> Result<(), ParseError> {
    match token.kind {
        ActionTokenKind::Right => Ok(()),
        ActionTokenKind::Broken(LexError::Unclosed) => Err(messages::unexpected(words, token, None)),
        _ => Err(ParseError::new(token.span, format!("unexpected word after `{}`", keyword.word()))
            .help(format!("end the action: {{{{ {} }}}}", keyword.word()))),
    }
}

fn template_name(words: &mut ActionWords<'_>, keyword: &str) -> Result<(Vec<u8>, Span), ParseError> {
    let token = words.next_word();
    if token.kind != ActionTokenKind::Quoted {
        if matches!(token.kind, ActionTokenKind::Broken(_)) {
            return Err(messages::unexpected(words, token, None));
        }
        return Err(ParseError::new(token.span, format!("`{keyword}` needs the name of a template"))
            .help(format!("write {{{{ {keyword} \"name\" }}}}, in double quotes")));
    }
    match literal::unquote(words.text(token.span)) {
        Some(name) => Ok((name, token.span)),
        None => Err(ParseError::new(token.span, "unknown escape sequence in this name")),
    }
}
