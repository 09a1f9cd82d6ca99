//! Pages of the list of users.

use http::header::LINK;
use http::request::Parts;
use http::{HeaderValue, Response};
use tidegate_identity::{UserKind, UserQuery};

use super::{BASE, UserAdmin, UserView};
use crate::endpoint::rest;
use tidegate_http::body::Body;
use tidegate_http::error::ApiError;
use tidegate_http::percent::encode;

/// The maximum number of users on a page, which is also the default for `limit`.
const MOST: u32 = 1_000;

/// Lists the users that the caller may see. The owner gets one page of the tenant's users, a
/// sub-user only itself.
pub(super) async fn list(admin: &UserAdmin, head: &Parts) -> Result<Response<Body>, ApiError> {
    let claims = &admin.user.claims;
    let query = query(head)?;
    if !claims.owner {
        let itself = admin.find(&[&claims.user]).await?;
        return rest::shown(&itself.iter().map(UserView::of).collect::<Vec<_>>());
    }
    // The query asks for one user more than the page shows. If this user exists, another page
    // follows.
    let wanted = UserQuery {
        limit: query.limit + 1,
        ..query.clone()
    };
    let directory = admin.accounts.directory();
    let found = directory.user_page(&claims.database, &wanted).await;
    let mut users = found.map_err(ApiError::from_accounts)?;
    let more = users.len() > query.limit as usize;
    users.truncate(query.limit as usize);
    let views: Vec<_> = users.iter().map(UserView::of).collect();
    let mut response = rest::shown(&views)?;
    let last = users.last().filter(|_| more);
    let next = last.and_then(|user| HeaderValue::try_from(link(&query, &user.key.name)).ok());
    if let Some(next) = next {
        response.headers_mut().insert(LINK, next);
    }
    Ok(response)
}

fn query(head: &Parts) -> Result<UserQuery, ApiError> {
    let mut query = UserQuery {
        kind: None,
        group: None,
        after: None,
        limit: MOST,
    };
    for (name, value) in rest::query(head, &["limit", "after", "kind", "group"])? {
        match name.as_str() {
            "limit" => {
                let limit = value
                    .parse()
                    .ok()
                    .filter(|limit| (1..=MOST).contains(limit));
                query.limit = limit
                    .ok_or_else(|| ApiError::input("`limit`: expected a number from 1 to 1000"))?;
            }
            "kind" => {
                let kind = UserKind::from_name(&value);
                query.kind =
                    Some(kind.ok_or_else(|| ApiError::input("`kind`: expected role or member"))?);
            }
            "group" => query.group = Some(value),
            _ => query.after = Some(value),
        }
    }
    Ok(query)
}

/// The link to the next page (RFC 8288).
fn link(query: &UserQuery, last: &str) -> String {
    let mut address = format!("<{BASE}?limit={}&after={}", query.limit, encode(last));
    if let Some(kind) = query.kind {
        address = format!("{address}&kind={}", kind.name());
    }
    if let Some(group) = &query.group {
        address = format!("{address}&group={}", encode(group));
    }
    format!("{address}>; rel=\"next\"")
}
