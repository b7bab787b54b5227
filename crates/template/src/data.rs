//! What the template of a rendered file can look up besides the environment (D15).

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::budget::Budget;
use crate::error::{FunctionError, TemplateError, TemplateStage};
use crate::functions::Function;
use crate::span::Span;
use crate::tree::{CommandNode, Operand, OperandKind, Pipeline, TemplateNode, TemplateSet};
use crate::value::{List, RecordValue, TemplateValue, TextValue};

/// What is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LookUpSource {
    /// `watch "NAME"`: what a watch has found.
    Watch,
    /// `key "PATH"` and `keyOrDefault "PATH" "VALUE"`: a key of Consul.
    Key,
    /// `keys "PREFIX"`: all keys below a prefix.
    Keys,
    /// `secret "NAME"`: one of `secrets`.
    Secret,
}

/// A place where a template looks something up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// What is looked up.
    pub source: LookUpSource,
    /// Its name.
    pub name: String,
    /// The name in the source.
    pub span: Span,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// A string.
    Text(Vec<u8>),
    /// True or false.
    Flag(bool),
    /// A number.
    Number(i64),
    /// A list of strings.
    Texts(Vec<String>),
    /// Strings by name.
    Map(BTreeMap<String, String>),
    /// A list of objects of one kind.
    Objects(Vec<DataObject>),
}

/// An object with named fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataObject {
    /// What it is, for messages: `an instance`.
    pub kind: &'static str,
    /// Its fields.
    pub fields: Vec<(&'static str, Data)>,
}

/// Answers what a template looks up.
pub trait LookUp {
    /// What was found; `None` if it does not exist.
    fn look_up(&self, source: LookUpSource, name: &str) -> Option<Data>;
}

/// Looks something up for a function.
pub(crate) fn value_of(
    data: Option<&dyn LookUp>,
    budget: &mut Budget,
    source: LookUpSource,
    name: &TextValue,
) -> Result<Option<TemplateValue>, FunctionError> {
    let name = String::from_utf8_lossy(name);
    let found = data.and_then(|data| data.look_up(source, &name));
    found.map(|data| value(data, budget)).transpose()
}

fn value(data: Data, budget: &mut Budget) -> Result<TemplateValue, FunctionError> {
    let text = |text: Vec<u8>, budget: &mut Budget| {
        budget.bytes(text.len() + size_of::<TextValue>()).map(|()| TextValue::from(text))
    };
    Ok(match data {
        Data::Text(bytes) => TemplateValue::Text(text(bytes, budget)?),
        Data::Flag(flag) => TemplateValue::Bool(flag),
        Data::Number(number) => TemplateValue::Int(number),
        Data::Texts(items) => {
            let texts = items.into_iter().map(|item| text(item.into_bytes(), budget));
            let texts = texts.collect::<Result<Vec<_>, _>>()?;
            let length = texts.len();
            TemplateValue::Texts(List::new(texts, length))
        }
        Data::Map(map) => {
            let mut entries = BTreeMap::new();
            for (name, item) in map {
                entries.insert(text(name.into_bytes(), budget)?, text(item.into_bytes(), budget)?);
            }
            TemplateValue::Map(Rc::new(entries))
        }
        Data::Objects(objects) => {
            let records = objects.into_iter().map(|object| record(object, budget));
            let records = records.collect::<Result<Vec<_>, _>>()?;
            let length = records.len();
            TemplateValue::Records(List::new(records, length))
        }
    })
}

fn record(object: DataObject, budget: &mut Budget) -> Result<Rc<RecordValue>, FunctionError> {
    budget.step(1)?;
    budget.bytes(size_of::<RecordValue>())?;
    let fields = object.fields.into_iter().map(|(name, data)| Ok((name, value(data, budget)?)));
    Ok(Rc::new(RecordValue { kind: object.kind, fields: fields.collect::<Result<_, FunctionError>>()? }))
}

/// All places of a program that look something up. A name that is not written in quotes is an error: what a file depends on is
/// known before it is rendered.
pub(crate) fn uses(program: &TemplateSet) -> Result<Vec<Use>, Vec<TemplateError>> {
    let mut finder = Finder { uses: Vec::new(), errors: Vec::new() };
    let mut open: Vec<&TemplateNode> = program.templates.values().flatten().collect();
    while let Some(node) = open.pop() {
        match node {
            TemplateNode::Text(_) | TemplateNode::Break | TemplateNode::Continue => {}
            TemplateNode::Action(pipe, _) => finder.pipeline(pipe),
            TemplateNode::If(branches, otherwise) => {
                for (pipe, body) in branches {
                    finder.pipeline(pipe);
                    open.extend(body);
                }
                open.extend(otherwise);
            }
            TemplateNode::Range(block) | TemplateNode::With(block) => {
                finder.pipeline(&block.pipe);
                open.extend(block.body.iter().chain(&block.otherwise));
            }
            TemplateNode::Template { pipe, .. } => pipe.iter().for_each(|pipe| finder.pipeline(pipe)),
        }
    }
    let Finder { mut uses, errors } = finder;
    uses.sort_by_key(|one| one.span);
    if errors.is_empty() { Ok(uses) } else { Err(errors) }
}

struct Finder {
    uses: Vec<Use>,
    errors: Vec<TemplateError>,
}

impl Finder {
    fn pipeline(&mut self, pipe: &Pipeline) {
        pipe.commands.iter().for_each(|command| self.command(command));
    }

    /// The depth of parentheses is limited, so this recursion is, too.
    fn command(&mut self, CommandNode { operand, arguments, .. }: &CommandNode) {
        match &operand.kind {
            OperandKind::Function(function) => self.call(*function, operand, arguments.first()),
            _ => self.operand(operand),
        }
        arguments.iter().for_each(|argument| self.operand(argument));
    }

    fn operand(&mut self, operand: &Operand) {
        match &operand.kind {
            OperandKind::Function(function) => self.call(*function, operand, None),
            OperandKind::Pipe(pipe) => self.pipeline(pipe),
            OperandKind::Chain(inner, _) => self.operand(inner),
            OperandKind::Dot
            | OperandKind::Nil
            | OperandKind::Constant(_)
            | OperandKind::Overflow
            | OperandKind::Fields(_)
            | OperandKind::Variable(..) => {}
        }
    }

    fn call(&mut self, function: Function, operand: &Operand, name: Option<&Operand>) {
        let Some(source) = function.source() else { return };
        let literal = |operand: &Operand| match &operand.kind {
            OperandKind::Constant(TemplateValue::Text(text)) => String::from_utf8(text.to_vec()).ok(),
            _ => None,
        };
        let signature = function.signature();
        match name.and_then(literal).zip(name) {
            Some((name, operand)) => self.uses.push(Use { source, name, span: operand.span }),
            None => TemplateError {
                stage: TemplateStage::Parse,
                span: name.unwrap_or(operand).span,
                message: format!("`{}` needs a name in quotes", signature.name),
                help: Some(format!(
                    "what a file uses must be known before it is rendered; write: {}",
                    signature.usage
                )),
            }
            .add_to(&mut self.errors),
        }
    }
}
