//! `template.json`: templates, and what Go's text/template with 3.8's functions makes of them.

use containerpilot_config::template::{TemplateStage, render};

use super::harness::{Outcome, accepted, bytes, environment, run, text};

#[test]
fn c2_vectors_template() {
    run("template.json", |case| {
        let source = bytes(case, "template");
        match (render(&source, &environment(case)), accepted(case)) {
            (Ok(rendered), true) => {
                let expected = bytes(case, "output");
                if rendered.text == expected {
                    Outcome::Passed
                } else {
                    let (found, expected) =
                        (String::from_utf8_lossy(&rendered.text), String::from_utf8_lossy(&expected));
                    Outcome::Failed(format!("expected {expected:?}, found {found:?}"))
                }
            }
            (Ok(rendered), false) => Outcome::Failed(format!(
                "rendered {:?}, 3.8 says {}",
                String::from_utf8_lossy(&rendered.text),
                text(case, "error")
            )),
            (Err(errors), true) => Outcome::Failed(format!("refused: {}", errors[0].message)),
            (Err(errors), false) => {
                let stage = if errors[0].stage == TemplateStage::Parse { "parse" } else { "exec" };
                if stage == text(case, "stage") {
                    Outcome::Passed
                } else {
                    Outcome::Failed(format!(
                        "refused at {stage}, by 3.8 at {}: {}",
                        text(case, "stage"),
                        errors[0].message
                    ))
                }
            }
        }
    });
}
