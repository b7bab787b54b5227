//! The loop's part of rendered files (D15): each step runs on a thread of its own, and its result comes back as a
//! message.

use std::panic::{AssertUnwindSafe, catch_unwind};

use containerpilot_core::Input;
use containerpilot_core::SortedMap;
use containerpilot_core::ids::RenderId;
use containerpilot_core::input::{RenderError, RenderedText};

use crate::files::{FileInputs, TempFile, prepare};
use crate::messages::{LoopMessage, LoopSender};

/// Enough for the deepest template.
const STACK_BYTES: usize = 1024 * 1024;

/// The texts that wait for their test or their installation.
pub(crate) struct PendingFiles {
    sender: LoopSender,
    ready: SortedMap<RenderId, TempFile>,
}

impl PendingFiles {
    pub(crate) fn new(sender: LoopSender) -> Self {
        Self { sender, ready: SortedMap::new() }
    }

    /// Renders a file. Returns the result if that is known at once.
    pub(crate) fn render(&self, render: RenderId, inputs: FileInputs) -> Option<Input> {
        let done = move || LoopMessage::FileRendered(render, caught(|| prepare(&inputs), RenderError::Text));
        let result = Err(RenderError::System(self.on_thread(done)?));
        Some(Input::FileRendered { render, result })
    }

    /// A file was rendered: keeps its text for its test and its installation.
    pub(crate) fn rendered(
        &mut self,
        render: RenderId,
        result: Result<Option<TempFile>, RenderError>,
    ) -> Input {
        let result = result.map(|text| match text {
            None => RenderedText::Same,
            Some(text) => {
                self.ready.insert(render, text);
                RenderedText::New
            }
        });
        Input::FileRendered { render, result }
    }

    /// The path of a text that waits for its test.
    pub(crate) fn path_of(&self, render: RenderId) -> Option<String> {
        self.ready.get(&render).map(|text| text.path().display().to_string())
    }

    /// Replaces a file by its new text. Returns the result if that is known at once.
    pub(crate) fn install(&mut self, render: RenderId) -> Option<Input> {
        let Some(text) = self.ready.remove(&render) else {
            let result = Err("internal error: there is no such text".to_owned());
            return Some(Input::FileInstalled { render, result });
        };
        let done = move || {
            LoopMessage::FileInstalled(
                render,
                caught(|| text.install().map_err(|error| error.to_string()), |why| why),
            )
        };
        let result = Err(self.on_thread(done)?);
        Some(Input::FileInstalled { render, result })
    }

    /// Removes a text that is not installed. If no thread can be started, the next rendering removes it.
    pub(crate) fn discard(&mut self, render: RenderId) {
        if let Some(text) = self.ready.remove(&render) {
            let _ = std::thread::Builder::new().name("file".to_owned()).spawn(move || text.remove());
        }
    }

    /// Runs something and sends its result. Returns why it cannot be run.
    fn on_thread(&self, run: impl FnOnce() -> LoopMessage + Send + 'static) -> Option<String> {
        let sender = self.sender.clone();
        let thread = std::thread::Builder::new().name("file".to_owned()).stack_size(STACK_BYTES);
        let started = thread.spawn(move || {
            sender.send(run());
        });
        started.err().map(|error| {
            format!("cannot start a thread: {}", containerpilot_process::error_text::describe(&error))
        })
    }
}

/// A panic becomes an error: the core waits for a result.
fn caught<T, E>(run: impl FnOnce() -> Result<T, E>, error: impl FnOnce(String) -> E) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(error("internal error, please report it; see the log".to_owned())))
}
