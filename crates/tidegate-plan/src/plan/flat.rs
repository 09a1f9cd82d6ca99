//! A short root list and the lists below its rows, in one statement: one round trip, and one
//! statement is a snapshot of its own.

use std::mem;

use tidegate_catalog::RelationId;
use tidegate_sql::BoundStatement;

use super::level::{Level, Settings, Source, here, narrow};
use crate::operation::List;
use crate::row::{Program, Rows};
use crate::statement::{self, Above, Children, Page};
use crate::{Error, Result};

/// The longest list whose rows may have theirs read one by one: with many, or without an index,
/// one statement for all of them is cheaper.
const SHORT: u64 = 32;

/// Makes one statement of a short list and the only lists below it, if that is all there is.
pub(super) fn join<'a>(settings: &Settings<'a>, levels: &mut [Level<'a>]) {
    let [above, below] = levels else {
        return;
    };
    let source = mem::replace(&mut above.source, Source::One);
    let each = mem::replace(&mut below.source, Source::Below);
    above.source = match (source, each) {
        (Source::List(list), Source::Children(each))
            if is_short(&list, above.relation, settings)
                && each.limit.is_none()
                && each.offset.is_none() =>
        {
            let nothing = Rows::new(Program::default(), Vec::new(), 0);
            above.rows.nest(mem::replace(&mut below.rows, nothing));
            Source::Flat(list, each)
        }
        (source, each) => {
            below.source = each;
            source
        }
    };
}

fn is_short(list: &List, relation: RelationId, settings: &Settings<'_>) -> bool {
    let page = Page::of(list, settings.schema.relation(relation), &settings.limits);
    page.single || list.limit.is_some_and(|limit| limit <= SHORT)
}

/// The statement of both levels; `rows` are those above.
pub(super) fn statement(
    settings: &Settings<'_>,
    relation: RelationId,
    (list, each): (&List, &List),
    rows: &mut Rows<'_>,
) -> Result<BoundStatement> {
    let Settings { schema, limits } = *settings;
    let page = Page::of(list, schema.relation(relation), &limits);
    rows.most = narrow(page.most);
    let (Some(below), [child]) = (&mut rows.below, &rows.program.children[..]) else {
        return Err(Error::Internal("a flat statement without rows below"));
    };
    let target = schema.relation(child.relationship.target);
    let page_of_each = Page::of(each, target, &limits);
    below.rows.most = narrow(page_of_each.most);
    let above = Above {
        relation,
        list,
        page: &page,
        program: &rows.program,
    };
    let below = Children {
        schema,
        relationship: child.relationship,
        here: &here(schema, &rows.program, 0),
        list: Some(each),
        program: &below.rows.program,
    };
    Ok(statement::flat(&above, &below, &page_of_each))
}

/// The rows below, once they have come.
pub(super) fn part<'a>(above: &mut [Level<'a>]) -> Result<Rows<'a>> {
    let below = above.first_mut().and_then(|level| level.rows.below.take());
    let below = below.ok_or(Error::Internal("rows below that never came"))?;
    Ok(below.rows)
}
