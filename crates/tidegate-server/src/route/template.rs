//! Matches paths with templates, which have names in braces.

use std::borrow::Cow;

use tidegate_http::percent;

/// The part of a template before its first name. It is compared first, because this comparison is
/// cheap and most paths already differ in this part.
pub(super) const fn prefix(template: &str) -> &str {
    let mut end = 0;
    while end < template.len() && template.as_bytes()[end] != b'{' {
        end += 1;
    }
    template.split_at(end).0
}

/// The segments of `path` where `template` has names, percent-decoded. `None` if the path does not
/// match, or if such a segment is empty or not UTF-8.
pub(super) fn names<'p>(
    template: &str,
    path: &'p str,
) -> Option<impl Iterator<Item = Cow<'p, str>>> {
    let mut names = [None, None];
    let mut free = names.iter_mut();
    let mut parts = path.split('/');
    for expected in template.split('/') {
        let part = parts.next()?;
        if expected.starts_with('{') {
            let name = percent::decode(part).filter(|name| !name.is_empty())?;
            *free.next()? = Some(name);
        } else if part != expected {
            return None;
        }
    }
    parts.next().is_none().then(|| names.into_iter().flatten())
}
