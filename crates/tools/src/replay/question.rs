//! What is asked about a time of a recording.

use std::time::SystemTime;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::as_json;
use containerpilot_command_line::output;
use containerpilot_drawing::graph::mermaid;
use containerpilot_drawing::graph::model::Graph;
use containerpilot_recording::Recording;
use containerpilot_views::{explanation_text, status};

use super::clock::Clock;
use super::moment::Moment;
use super::printing::{note, screen, unknown_format};

/// What is asked about a time.
pub(super) enum Question {
    /// About everything, or about one job, watch, file, lock or group.
    Status(Option<String>),
    Explain(String),
    Graph,
}

impl Question {
    /// The question of the command line, if it has one.
    pub(super) fn new(args: &Arguments) -> Result<Option<Self>, Failure> {
        let mut words = args.rest.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
        let (what, name) = (words.next(), words.next());
        Ok(Some(match (what.as_deref(), name) {
            (None, _) => return Ok(None),
            (Some("status"), name) => Self::Status(name),
            (Some("explain"), Some(name)) => Self::Explain(name),
            (Some("explain"), None) => {
                return Err(Failure::Usage("explain needs the name of a job".to_owned()));
            }
            (Some("graph"), None) => Self::Graph,
            (Some("graph"), Some(name)) => {
                return Err(Failure::Usage(format!("unexpected argument `{name}` for graph")));
            }
            (Some(other), _) => {
                let why = format!("unknown question `{other}`: it is status, explain JOB or graph");
                return Err(Failure::Usage(why));
            }
        }))
    }

    /// Whether the answer is printed as JSON.
    pub(super) fn as_json(&self, args: &Arguments) -> Result<bool, Failure> {
        let format = args.text("format");
        match self {
            Self::Graph if !matches!(format, "" | "human") => {
                Err(unknown_format(format, "`human`, for a graph"))
            }
            _ => as_json(args),
        }
    }

    /// Prints the answer of the live command at that time.
    pub(super) fn answer(
        self,
        args: &Arguments,
        recording: &Recording<'_>,
        clock: &Clock,
        at: SystemTime,
    ) -> Result<(), Failure> {
        let json = self.as_json(args)?;
        let mut moment = Moment::new(recording, clock, at)?;
        if let Some(text) = &moment.note {
            note(text);
        }
        let text = match self {
            Self::Status(name) => {
                let answer = moment.answer();
                status::printed(screen(args), answer.as_bytes(), name.as_deref(), json)
                    .map_err(|error| Failure::Failed(error.to_string()))?
            }
            Self::Explain(name) => explanation_text::printed(&mut moment, &name, json)?,
            Self::Graph => mermaid::text(&Graph::of(moment.core.plan())),
        };
        output::write(args.text("out"), text.as_bytes())
    }
}
