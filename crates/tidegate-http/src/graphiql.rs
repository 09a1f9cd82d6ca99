//! The GraphiQL build that the operator provides (docs/adr/0008-graphql-page.md).

use std::collections::HashMap;

use bytes::Bytes;

/// The name of the HTML file, which loads the other files.
const PAGE: &str = "page.html";
/// The placeholder for the nonce in the HTML file.
const NONCE: &str = "{{nonce}}";
/// The placeholder for the path prefix of the service in the HTML file.
const BASE: &str = "{{base}}";

/// The reason why a folder is not a GraphiQL build.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphiqlError {
    /// The folder has no HTML file.
    #[error("page.html is missing")]
    NoPage,
    /// The HTML file is not text, or was not built for this service.
    #[error("page.html is not a page that `npm run build` made for this service")]
    ForeignPage,
}

/// A GraphiQL build: the HTML file and the files that it loads.
pub struct Graphiql {
    page: String,
    assets: HashMap<String, Bytes>,
    nonce: fn() -> [u8; 16],
}

impl Graphiql {
    /// Creates a build from its files, each with its name and content. `nonce` generates random
    /// bytes for the nonce of each page (CSP 3, section 2.3.1).
    ///
    /// # Errors
    ///
    /// If the page is missing, or was not built for this service.
    pub fn new(
        files: impl IntoIterator<Item = (String, Vec<u8>)>,
        nonce: fn() -> [u8; 16],
    ) -> Result<Self, GraphiqlError> {
        let mut assets: HashMap<_, _> = files
            .into_iter()
            .map(|(name, bytes)| (name, Bytes::from(bytes)))
            .collect();
        let page = assets.remove(PAGE).ok_or(GraphiqlError::NoPage)?;
        let page = String::from_utf8(page.into()).map_err(|_| GraphiqlError::ForeignPage)?;
        if !page.contains(NONCE) {
            return Err(GraphiqlError::ForeignPage);
        }
        Ok(Self {
            page,
            assets,
            nonce,
        })
    }

    /// The HTML page for a service with the path prefix `base`, and its nonce.
    pub fn page(&self, base: &str) -> (String, String) {
        let nonce = format!("{:032x}", u128::from_be_bytes((self.nonce)()));
        let page = self.page.replace(BASE, base).replace(NONCE, &nonce);
        (page, nonce)
    }

    /// A file that the page loads; `None` if there is no file with this name.
    pub fn asset(&self, name: &str) -> Option<&Bytes> {
        self.assets.get(name)
    }
}

impl std::fmt::Debug for Graphiql {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graphiql")
            .field("assets", &self.assets.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(page: &'static str) -> Vec<(String, Vec<u8>)> {
        vec![(PAGE.to_owned(), page.into())]
    }

    #[test]
    fn a_page_says_where_it_stands_and_carries_its_nonce() {
        let files = files("<script nonce=\"{{nonce}}\" src=\"{{base}}/a.js\">");
        let built = Graphiql::new(files, || [7; 16]).unwrap();
        let (page, nonce) = built.page("/db");
        assert_eq!(nonce, "07".repeat(16));
        assert_eq!(page, format!("<script nonce=\"{nonce}\" src=\"/db/a.js\">"));
    }

    #[test]
    fn other_folders_are_refused() {
        let nonce = || [0; 16];
        let error = Graphiql::new([], nonce).unwrap_err();
        assert_eq!(error, GraphiqlError::NoPage);
        let error = Graphiql::new(files("<p>Hello</p>"), nonce).unwrap_err();
        assert_eq!(error, GraphiqlError::ForeignPage);
    }
}
