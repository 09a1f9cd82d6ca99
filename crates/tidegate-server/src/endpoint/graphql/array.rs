//! Runs arrays of requests. Each request has a transaction of its own. The responses have the order
//! of the requests.
//!
//! Consecutive queries run concurrently, so that they share round trips. A mutation starts when all
//! earlier requests have ended. Later requests start when the mutation has ended.

use bytes::{BufMut, BytesMut};
use futures_util::future::join_all;
use tidegate_graphql::{Code, Error, ErrorSummary, GraphqlResponse, Request, ResponseText};

use super::Handler;

/// The maximum number of queries that run concurrently. Each of them may use a connection.
const MAX_CONCURRENT: usize = 8;

/// A request of the array, or the error that makes the request invalid.
type Parsed<'a> = Result<Request<'a>, Error>;

impl Handler<'_> {
    /// The responses to an array of requests as a JSON array, and their errors.
    pub(super) async fn array(&self, requests: &[Parsed<'_>]) -> (ResponseText, ErrorSummary) {
        let mut replies = CompletedResponses::new(self.app.limits().response);
        let mut rest = requests;
        while !rest.is_empty() {
            let queries = rest.iter().take(MAX_CONCURRENT);
            let queries = queries.take_while(|request| !self.writes(request)).count();
            let (next, later) = rest.split_at(queries.max(1));
            match next {
                [one] => replies.push(self.response(one, replies.remaining()).await),
                queries => self.at_once(queries, &mut replies).await,
            }
            rest = later;
        }
        replies.end()
    }

    /// Runs queries concurrently. Each may use an equal part of the remaining response budget. A
    /// query that needs more is run again, with the whole remaining budget.
    async fn at_once(&self, queries: &[Parsed<'_>], replies: &mut CompletedResponses) {
        let part = replies.remaining() / queries.len() as u64;
        let running = queries.iter().map(|query| self.response(query, part));
        for (query, reply) in queries.iter().zip(join_all(running).await) {
            let too_large = reply
                .errors
                .counts()
                .any(|(code, _)| code == Code::TooComplex);
            replies.push(if too_large {
                self.response(query, replies.remaining()).await
            } else {
                reply
            });
        }
    }

    async fn response(&self, request: &Parsed<'_>, response_budget: u64) -> GraphqlResponse {
        let reply = match request {
            Ok(request) => Box::pin(self.run(request, true, response_budget)).await,
            Err(error) => Ok(GraphqlResponse::refused(std::slice::from_ref(error))),
        };
        // Earlier requests of the array have been executed, so their responses must be sent.
        // Therefore an error of this request becomes one response of the array, and not the
        // response to the whole HTTP request.
        reply.unwrap_or_else(|failure| {
            GraphqlResponse::refused(&[Error::new(failure.graphql_code(), failure.message)])
        })
    }

    fn writes(&self, request: &Parsed<'_>) -> bool {
        request.as_ref().is_ok_and(|request| {
            let operation = request.operation_name.as_deref();
            let prepared = self.api.prepare(&request.query, operation);
            prepared.is_ok_and(|prepared| prepared.is_mutation())
        })
    }
}

/// The text of the response to an array, for the requests that have run so far.
struct CompletedResponses {
    /// The end of the text, as bytes in memory. Everything before it is in `text`. Large parts of
    /// `text` may be generated only when they are read.
    bytes: BytesMut,
    text: ResponseText,
    errors: ErrorSummary,
    /// The response budget of the array in bytes.
    most: u64,
}

impl CompletedResponses {
    /// An empty list of responses with a budget of `most` bytes.
    fn new(most: u64) -> Self {
        Self {
            bytes: BytesMut::with_capacity(1024),
            text: ResponseText::default(),
            errors: ErrorSummary::default(),
            most,
        }
    }

    /// The remaining response budget in bytes. When it is used up, the remaining requests are
    /// refused without being run. The requests before them are already committed.
    fn remaining(&self) -> u64 {
        let held = self.text.held() + self.bytes.len() as u64;
        self.most.saturating_sub(held)
    }

    fn push(&mut self, response: GraphqlResponse) {
        let is_first = self.bytes.is_empty() && self.text.held() == 0;
        self.bytes.put_u8(if is_first { b'[' } else { b',' });
        self.errors.add(response.errors);
        match response.body.into_bytes() {
            Ok(bytes) => self.bytes.put_slice(&bytes),
            Err(streamed) => {
                self.text.append(self.bytes.split());
                self.text.append(streamed);
            }
        }
    }

    fn end(mut self) -> (ResponseText, ErrorSummary) {
        self.bytes.put_u8(b']');
        self.text.append(self.bytes);
        (self.text, self.errors)
    }
}
