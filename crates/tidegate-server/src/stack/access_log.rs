//! Counts and logs requests.

use std::ops::ControlFlow;

use http::{Request, Response};

use super::around::Around;
use super::observation::Observation;
use tidegate_http::app::App;
use tidegate_http::body::Body;

#[derive(Clone, Debug)]
pub(crate) struct AccessLog(App);

impl AccessLog {
    pub(crate) fn new(app: App) -> Self {
        Self(app)
    }
}

impl Around for AccessLog {
    type State = Observation;

    fn before<B>(&self, request: &mut Request<B>) -> ControlFlow<Response<Body>, Observation> {
        ControlFlow::Continue(Observation::begin(self.0.clone(), request))
    }

    fn after(mut observation: Observation, response: &mut Response<Body>) {
        let subject = std::mem::take(&mut response.body_mut().subject);
        observation.responded(response.status().as_u16(), subject);
        response.body_mut().watch(Box::new(observation));
    }
}
