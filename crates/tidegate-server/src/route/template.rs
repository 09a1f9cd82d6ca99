//! Paths with names in them.

use std::borrow::Cow;

use tidegate_http::percent;

/// What a template has before its first name. Comparing it first is cheap, and most paths differ there.
pub(super) const fn prefix(template: &str) -> &str {
    let mut end = 0;
    while end < template.len() && template.as_bytes()[end] != b'{' {
        end += 1;
    }
    template.split_at(end).0
}

/// The names that `path` has where `template` has `{…}`, percent-decoded. `None` when the path does
/// not match, or when a name is empty or is not UTF-8.
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
