//! The table of contents: the lists of `docs/README.md`.

use crate::links::join;
use crate::markdown::{self, Block, plain};

/// The path of the table of contents.
pub const PATH: &str = "docs/README.md";

/// The section with the pages about the program itself. They are not in the program.
const PROJECT: &str = "The project";

/// All pages, by section.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The title of the manual.
    pub title: String,
    /// What the program is, in one paragraph.
    pub summary: String,
    /// The sections in their order.
    pub sections: Vec<Section>,
}

/// A heading with its list of pages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The heading.
    pub name: String,
    /// The pages. Entries for other files are not among them.
    pub pages: Vec<Page>,
}

/// A page of the manual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The path from the root of the repository.
    pub path: String,
    /// The text of its link.
    pub title: String,
    /// What it is about, in a line of plain text.
    pub about: String,
}

impl Contents {
    /// Reads the text of `docs/README.md`: each heading of the second level is a section, and each item of a list that begins
    /// with a link to a Markdown file is a page.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut contents = Self::default();
        for block in markdown::blocks(text) {
            match (block, contents.sections.last_mut()) {
                (Block::Heading(1, title), _) => contents.title = plain(&title),
                (Block::Heading(2, name), _) => {
                    contents.sections.push(Section { name: plain(&name), pages: Vec::new() });
                }
                (Block::Paragraph(text), None) if contents.summary.is_empty() => {
                    contents.summary = plain(&text)
                }
                (Block::List(items), Some(section)) => {
                    section.pages.extend(items.iter().filter_map(|item| page(&item.text)));
                }
                _ => {}
            }
        }
        contents.sections.retain(|section| !section.pages.is_empty());
        contents
    }

    /// All pages in their order.
    pub fn pages(&self) -> impl Iterator<Item = &Page> {
        self.sections.iter().flat_map(|section| &section.pages)
    }

    /// The sections whose pages are in the program.
    pub fn offline(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(|section| !section.is_project())
    }
}

impl Section {
    /// Returns true for the pages about how the program is made, tested and measured.
    #[must_use]
    pub fn is_project(&self) -> bool {
        self.name == PROJECT
    }
}

/// The page of an item such as `[Jobs](jobs.md): what runs`.
fn page(item: &str) -> Option<Page> {
    let link = markdown::links(item).into_iter().next().filter(|link| link.range.start == 0)?;
    let path = join(PATH, &link.target)?;
    let about = item.get(link.range.end..)?.trim_start_matches(':').trim();
    path.ends_with(".md").then(|| Page { path, title: plain(&link.text), about: plain(about) })
}

impl Page {
    /// Its name for `containerpilot help`: the path without `docs/`, `README` and `.md`, in lower case.
    #[must_use]
    pub fn topic(&self) -> String {
        let path = self.path.strip_prefix("docs/").unwrap_or(&self.path);
        let path = path.strip_suffix(".md").unwrap_or(path);
        path.strip_suffix("/README").unwrap_or(path).to_lowercase()
    }
}
