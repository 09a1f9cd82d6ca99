//! The steps of a document: its fenced blocks, in order.
//!
//! | block | what the runner does |
//! |---|---|
//! | `sh` | runs it with bash; a `json` or `text` block right after it is its output |
//! | `sh background` | starts it, waits for the first line of the output, and ends it with the document |
//! | any language with `file=NAME` | writes it to that file |
//! | any language with `norun` | nothing |
//! | a comment `<!-- test`, up to `-->` | runs it with bash; readers do not see it |
//!
//! `…` in an output matches anything.

/// What a document needs, from its line `<!-- needs: … -->`.
pub(crate) const NEEDS: &str = "<!-- needs:";

#[derive(Debug)]
pub(crate) enum BlockAction {
    /// Run a script, which must print this.
    Run(Option<String>),
    /// Start a script in the background.
    Start(Option<String>),
    /// Write the text to this file.
    File(String),
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) line: usize,
    pub(crate) step: BlockAction,
    pub(crate) text: String,
}

/// The blocks of a document, and those that match no row of the table above.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) steps: Vec<Block>,
    pub(crate) unknown: Vec<String>,
    pub(crate) norun: usize,
    /// Whether the last block was a command, so that a block with its output may follow.
    may_show_output: bool,
}

impl Blocks {
    pub(crate) fn of(document: &str) -> Self {
        let mut blocks = Self::default();
        let mut lines = document.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let end = match line.strip_prefix("```") {
                Some(_) => "```",
                None if line == "<!-- test" => "-->",
                None => {
                    blocks.may_show_output &= line.trim().is_empty();
                    continue;
                }
            };
            let info = line.strip_prefix("```").unwrap_or("sh hidden");
            let body = lines.by_ref().map(|(_, line)| line);
            let text: String = body
                .take_while(|line| *line != end)
                .flat_map(|line| [line, "\n"])
                .collect();
            blocks.add(number + 1, info, text);
        }
        blocks
    }

    fn add(&mut self, line: usize, info: &str, text: String) {
        let (language, attribute) = info.split_once(' ').unwrap_or((info, ""));
        let output = matches!(language, "json" | "text") && attribute.is_empty();
        if output && self.may_show_output {
            match &mut self.steps.last_mut().unwrap().step {
                BlockAction::Run(shown) | BlockAction::Start(shown) => *shown = Some(text),
                BlockAction::File(_) => {}
            }
            self.may_show_output = false;
            return;
        }
        let step = match (language, attribute) {
            (_, "norun") => {
                self.norun += 1;
                None
            }
            ("sh", "" | "hidden") => Some(BlockAction::Run(None)),
            ("sh", "background") => Some(BlockAction::Start(None)),
            (_, file) if file.starts_with("file=") => Some(BlockAction::File(file[5..].to_owned())),
            _ => {
                self.unknown.push(format!("{line}: ```{info}"));
                None
            }
        };
        self.may_show_output = language == "sh" && attribute != "norun";
        if let Some(step) = step {
            self.steps.push(Block { line, step, text });
        }
    }
}

/// Whether the text has the parts of the pattern in order; `…` matches anything.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut rest = text.trim();
    let parts: Vec<_> = pattern.trim().split('…').collect();
    let last = parts.len() - 1;
    for (place, part) in parts.iter().enumerate() {
        let found = match place {
            0 => rest.starts_with(part).then_some(0),
            _ if place == last => rest.ends_with(part).then(|| rest.len() - part.len()),
            _ => rest.find(part),
        };
        let Some(found) = found else { return false };
        rest = &rest[found + part.len()..];
    }
    rest.is_empty()
}

#[test]
fn a_pattern_matches_around_what_it_leaves_out() {
    let pattern = "{\"a\":\"…\",\"b\":1}";
    assert!(matches(pattern, "{\"a\":\"xyz\",\"b\":1}\n"));
    assert!(!matches(pattern, "{\"a\":\"xyz\",\"b\":2}"));
    assert!(matches("a", "a"));
    assert!(!matches("a", "ab"));
}

#[test]
fn blocks_are_read_with_their_outputs() {
    let blocks = Blocks::of(
        "```sh\na\n```\n\n```json\nb\n```\n```js file=x.js\nc\n```\n```sh background\nd\n```\n\
         text\n```text\ne\n```\n<!-- test\nf\n-->\n```sh norun\ng\n```\n",
    );
    let shown: Vec<_> = blocks
        .steps
        .iter()
        .map(|it| format!("{:?}", it.step))
        .collect();
    let expected = [
        "Run(Some(\"b\\n\"))",
        "File(\"x.js\")",
        "Start(None)",
        "Run(None)",
    ];
    assert_eq!(shown, expected);
    assert_eq!(blocks.unknown, ["15: ```text"]);
    assert_eq!(blocks.norun, 1);
}
