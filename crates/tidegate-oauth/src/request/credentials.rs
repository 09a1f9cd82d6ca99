//! Client credentials of a request.

use super::{BasicCredentials, Parameters};
use crate::{Error, Result};
use tidegate_identity::Secret;

/// A client's id and secret. With Basic authentication there may be two readings of them (see
/// [`BasicCredentials`]).
#[derive(Clone, Debug)]
pub struct ClientCredentials {
    readings: Vec<(String, Option<Secret>)>,
}

impl ClientCredentials {
    /// Parses `client_id` and `client_secret` from the body or from Basic credentials; the id may
    /// be in both.
    ///
    /// Errors: [`Error::MissingParameter`] without an id, [`Error::TwoCredentials`] if the body has
    /// a secret besides Basic credentials, or an id that differs from the id of the Basic
    /// credentials.
    pub fn parse(parameters: &Parameters, basic: Option<&BasicCredentials>) -> Result<Self> {
        let id = parameters.text("client_id")?;
        let secret = parameters.text("client_secret")?;
        let Some(basic) = basic else {
            let id = id.ok_or(Error::MissingParameter("client_id"))?;
            return Ok(Self {
                readings: vec![(id.to_owned(), secret.map(Secret::new))],
            });
        };
        let readings: Vec<_> = basic
            .readings
            .iter()
            .filter(|(known, _)| id.is_none_or(|id| id == known))
            .map(|(id, secret)| (id.clone(), Some(secret.clone()).filter(|s| !s.is_empty())))
            .collect();
        if secret.is_some() || readings.is_empty() {
            return Err(Error::TwoCredentials);
        }
        Ok(Self { readings })
    }

    /// The client ids to look up: first the id as sent, then the form-decoded id.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.readings.iter().map(|(id, _)| id.as_str())
    }

    /// The secrets of the readings that have this client id.
    pub(crate) fn secrets_for(&self, id: &str) -> impl Iterator<Item = &Secret> {
        self.readings
            .iter()
            .filter(move |(known, _)| known == id)
            .filter_map(|(_, s)| s.as_ref())
    }
}
