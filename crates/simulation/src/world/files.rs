//! Rendered files (D15). The text of a file is what it was rendered with: two renderings with the same data make the same text.

use std::sync::Arc;

use containerpilot_core::ids::{CheckRunId, FileIx, RenderId};
use containerpilot_core::input::{Input, RenderError, RenderedText};
use containerpilot_core::plan::FileData;

use super::script::{RenderEnd, RenderScript, Script};
use super::{Scheduled, World};

/// Why the system refuses to write a file.
const FULL: &str = "No space left on device";

/// A text in a temporary file, or one that is being rendered.
pub(super) struct Rendering {
    to: String,
    /// With the template: a changed template makes another text.
    text: RenderedContent,
    script: RenderScript,
}

/// The text of a file: its template, and what its watches had found.
pub type RenderedContent = (Option<Arc<[u8]>>, FileData);

impl<S: Script> World<S> {
    /// The text at a path, if a file was written there.
    #[must_use]
    pub fn text_of(&self, path: &str) -> Option<&RenderedContent> {
        self.written.get(path)
    }

    /// The number of temporary files, and of renderings in progress.
    #[must_use]
    pub fn temporary_files(&self) -> usize {
        self.renderings.len()
    }

    pub(super) fn render_file(&mut self, file: FileIx, render: RenderId, data: &FileData) {
        let plan = Arc::clone(&self.plan);
        let Some(planned) = plan.files.get(file.index()) else { return };
        let script = self.script.render(&plan, file, self.now);
        let text = (planned.template.clone(), data.clone());
        self.renderings.insert(render, Rendering { to: planned.to.clone(), text, script });
        self.schedule(script.takes, Scheduled::Render(render));
    }

    pub(super) fn render_done(&mut self, render: RenderId) -> Input {
        let Some(rendering) = self.renderings.get(&render) else { return Input::Tick };
        let same = self.written.get(&rendering.to) == Some(&rendering.text);
        let result = match rendering.script.end {
            RenderEnd::Fails => {
                Err(RenderError::Text("template:1:1: the simulation lets it fail".to_owned()))
            }
            RenderEnd::Refused => Err(RenderError::System(FULL.to_owned())),
            RenderEnd::Renders if same => Ok(RenderedText::Same),
            RenderEnd::Renders => Ok(RenderedText::New),
        };
        if result != Ok(RenderedText::New) {
            self.renderings.remove(&render);
        }
        Input::FileRendered { render, result }
    }

    pub(super) fn test_file(&mut self, file: FileIx, run: CheckRunId) {
        let plan = Arc::clone(&self.plan);
        let script = self.script.test(&plan, file, self.now);
        self.begin_check(run, script, "exited with code 1");
    }

    pub(super) fn install_file(&mut self, render: RenderId) {
        let Some(takes) = self.renderings.get(&render).map(|rendering| rendering.script.takes) else {
            return;
        };
        self.schedule(takes, Scheduled::Install(render));
    }

    pub(super) fn install_done(&mut self, render: RenderId) -> Input {
        let Some(Rendering { to, text, script }) = self.renderings.remove(&render) else {
            return Input::Tick;
        };
        let result = match script.installs {
            true => {
                self.written.insert(to, text);
                Ok(())
            }
            false => Err(FULL.to_owned()),
        };
        Input::FileInstalled { render, result }
    }
}
