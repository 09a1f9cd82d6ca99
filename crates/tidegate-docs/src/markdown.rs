//! Renders a chapter as HTML, with anchors for its headings and links to served pages. Also
//! collects the text of its sections.

use std::collections::HashMap;

use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};

use crate::link::Target;

/// A chapter as HTML.
pub(crate) struct Rendered {
    /// The text of the first heading.
    pub title: String,
    pub html: String,
    /// The text under each heading, in order.
    pub sections: Vec<Section>,
}

/// A heading, and the text between it and the next heading of any level.
#[derive(Default)]
pub(crate) struct Section {
    /// The anchor of the heading.
    pub id: String,
    pub heading: String,
    pub level: u8,
    pub text: String,
}

/// Renders Markdown. `target` converts the address of a link to its target.
pub(crate) fn render(text: &str, target: impl Fn(&str) -> Target) -> Rendered {
    let mut events: Vec<_> = Parser::new_ext(text, Options::ENABLE_TABLES)
        .filter_map(|event| match event {
            // Blocks of HTML are instructions for the tests and are not shown.
            Event::Html(_) => None,
            Event::InlineHtml(text) => Some(Event::Text(text)),
            event => Some(event),
        })
        .collect();
    let sections = anchor_headings(&mut events);
    point_links(&mut events, target);
    let mut out = String::new();
    html::push_html(&mut out, events.into_iter());
    Rendered {
        title: sections
            .first()
            .map(|first| first.heading.clone())
            .unwrap_or_default(),
        html: within_policy(&out),
        sections,
    }
}

/// Gives each heading the same anchor as GitHub does, and collects the text under it.
fn anchor_headings(events: &mut [Event<'_>]) -> Vec<Section> {
    let mut used: HashMap<String, usize> = HashMap::new();
    let mut sections: Vec<Section> = Vec::new();
    let mut at = 0;
    while at < events.len() {
        if let Event::Start(Tag::Heading { level, .. }) = &events[at] {
            let level = *level;
            let length = events[at..]
                .iter()
                .take_while(|event| !ends_heading(event))
                .count();
            let heading: String = events[at..at + length].iter().filter_map(text_of).collect();
            let id = unused_anchor(&heading, &mut used);
            if let Event::Start(Tag::Heading { id: place, .. }) = &mut events[at] {
                *place = Some(CowStr::from(id.clone()));
            }
            sections.push(Section {
                id,
                heading,
                level: number(level),
                text: String::new(),
            });
            at += length;
        } else if let (Some(section), Some(text)) = (sections.last_mut(), text_of(&events[at])) {
            section.text.push_str(text);
        } else if let (Some(section), Event::End(_)) = (sections.last_mut(), &events[at])
            && !section.text.ends_with(' ')
        {
            section.text.push(' ');
        }
        at += 1;
    }
    sections
}

fn ends_heading(event: &Event<'_>) -> bool {
    matches!(event, Event::End(TagEnd::Heading(_)))
}

fn text_of<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    match event {
        Event::Text(text) | Event::Code(text) => Some(text),
        Event::SoftBreak | Event::HardBreak => Some(" "),
        _ => None,
    }
}

const fn number(level: HeadingLevel) -> u8 {
    level as u8
}

fn unused_anchor(heading: &str, used: &mut HashMap<String, usize>) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let lower = heading.trim().to_lowercase();
    let anchor = lower
        .chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-");
    let count = used.entry(anchor.clone()).or_default();
    *count += 1;
    match *count {
        1 => anchor,
        more => format!("{anchor}-{}", more - 1),
    }
}

/// Replaces the addresses of links by their targets. If the target is a file that is not served,
/// only the text of the link is kept. Also removes the words after the language of a code block.
fn point_links(events: &mut Vec<Event<'_>>, target: impl Fn(&str) -> Target) {
    let mut kept = Vec::new();
    events.retain_mut(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            let found = target(dest_url);
            kept.push(found != Target::NotServed);
            if let Target::Url(url) = found {
                *dest_url = url.into();
                true
            } else {
                false
            }
        }
        Event::End(TagEnd::Link | TagEnd::Image) => kept.pop().unwrap_or(true),
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
            // The words after the language are instructions for the tests.
            let language = info
                .split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned();
            *info = language.into();
            true
        }
        _ => true,
    });
}

/// Replaces attributes that the content security policy forbids, and makes scrolling elements
/// focusable by keyboard. The string replacements affect only tags, because text is escaped.
fn within_policy(html: &str) -> String {
    html.replace(" style=\"text-align: right\"", " class=\"right\"")
        .replace(" style=\"text-align: center\"", " class=\"center\"")
        .replace(" style=\"text-align: left\"", "")
        // A header cell without text becomes a data cell, because screen readers would read it as
        // an empty name of a column.
        .replace("<th></th>", "<td></td>")
        .replace("<pre>", "<pre tabindex=\"0\">")
        .replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> Rendered {
        render(text, |link| match link {
            "gone" => Target::NotServed,
            link => Target::Url(format!("/docs/{link}")),
        })
    }

    #[test]
    fn headings_have_the_anchors_of_github() {
        let page = rendered("# A `b`, c\n\ntext\n\n## Twice\n\none\n\n## Twice\n\ntwo *three*");
        assert_eq!(page.title, "A b, c");
        let ids: Vec<_> = page
            .sections
            .iter()
            .map(|section| section.id.as_str())
            .collect();
        assert_eq!(ids, ["a-b-c", "twice", "twice-1"]);
        assert_eq!(page.sections[2].text.trim(), "two three");
        assert!(
            page.html.contains("<h2 id=\"twice-1\">Twice</h2>"),
            "{}",
            page.html
        );
    }

    #[test]
    fn links_lead_to_served_pages() {
        let page = rendered("[one](a) and [two](gone)");
        assert_eq!(page.html, "<p><a href=\"/docs/a\">one</a> and two</p>\n");
    }

    #[test]
    fn html_and_styles_are_left_out() {
        let page =
            rendered("<!-- test -->\n\n|a|\n|--:|\n|1|\n\n<b>2</b>\n\n```sh norun\nls <x>\n```\n");
        assert!(
            !page.html.contains("<!--") && !page.html.contains("<b>"),
            "{}",
            page.html
        );
        assert!(!page.html.contains("style="), "{}", page.html);
        assert!(
            page.html.contains("<td class=\"right\">1</td>"),
            "{}",
            page.html
        );
        assert!(
            page.html
                .contains("<code class=\"language-sh\">ls &lt;x&gt;"),
            "{}",
            page.html
        );
    }
}
