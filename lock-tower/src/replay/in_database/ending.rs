//! The end of a request: commit, roll back, or answer by another run's record.

use std::sync::Arc;

use http::{Response, request};
use http_body::Body;

use super::super::RecordedBody;
use super::super::duplicate::{Whole, refused, repeated};
use super::super::recording::{Failed, Failure, Place, Recording};
use super::broken;
use super::found::{is_same, record_of};
use super::place::InDatabase;
use crate::lock::{Kept, SharedLock, has_succeeded, is_by_inner_layer};
use crate::once::{AnyRun, AtEnd, Refusal};
use crate::options::Remember;
use crate::rejection::{Rejection, RejectionKind};

/// The end of one run. Dropped before, as by a panic, it rolls the transaction back.
pub(super) struct Ending {
    recording: Recording<InDatabase>,
    /// The head of the request, for the refusal that may take the place of the response.
    head: request::Parts,
    run: Arc<dyn AnyRun>,
    lock: Option<Arc<SharedLock>>,
}

impl Ending {
    pub(super) fn new(
        recording: Recording<InDatabase>,
        head: request::Parts,
        run: Arc<dyn AnyRun>,
        lock: Option<Arc<SharedLock>>,
    ) -> Self {
        Self {
            recording,
            head,
            run,
            lock,
        }
    }

    /// Ends the request after its handler: **a success commits, and everything else rolls back**.
    pub(super) async fn end<R: Body, E>(
        self,
        result: Result<Response<R>, E>,
    ) -> Result<Response<RecordedBody<R>>, E> {
        let at_end = self.run.close();
        if let AtEnd::Refused(refusal) = at_end {
            return Ok(self.instead(&refusal));
        }
        match result {
            Ok(response) => Ok(self.answered(response, &at_end).await),
            Err(error) => match self.failed(&at_end).await {
                Ok(()) => Err(error),
                Err(refusal) => Ok(self.instead(&refusal)),
            },
        }
    }

    async fn answered<R: Body>(
        self,
        response: Response<R>,
        at_end: &AtEnd,
    ) -> Response<RecordedBody<R>> {
        let (mut head, body) = response.into_parts();
        let remember = match self.recording.remember(&mut head) {
            // A request without a key leaves no record.
            _ if self.recording.place.operation.is_none() => Remember::Nothing,
            remember => remember,
        };
        let succeeded = has_succeeded(&head) && !is_by_inner_layer(&head.extensions);
        let commits = succeeded || keeps_errors(at_end);
        if !commits {
            // Before a body is read, which may take long.
            self.run.clone().roll_back().await;
            if remember == Remember::Nothing {
                return Response::from_parts(head, RecordedBody::unrecorded(body));
            }
        }
        if matches!(at_end, AtEnd::Lent) {
            self.report_lent();
            return self.instead(&Refusal::Lent);
        }
        let (kept, body) = self.recording.kept(remember, &head, body).await;
        let ended = match kept {
            Ok(kept) => {
                if succeeded && kept.is_some() && matches!(at_end, AtEnd::Unused) {
                    self.report_unused();
                }
                self.commit(kept).await
            }
            Err(Failed { failure, kept }) => {
                let keeps = failure == Failure::Call && keeps_errors(at_end);
                if !keeps {
                    self.run.clone().roll_back().await;
                }
                match (self.commit(kept).await, failure) {
                    // The client has got nothing yet.
                    (Ok(()), Failure::Body) => return broken(),
                    (ended, _) => ended,
                }
            }
        };
        match ended {
            Ok(()) => Response::from_parts(head, body),
            Err(refusal) => self.instead(&refusal),
        }
    }

    /// Ends a request whose service has failed, so that there is no response.
    async fn failed(&self, at_end: &AtEnd) -> Result<(), Refusal> {
        let done = match self.recording.place.decided() {
            Some(Remember::Done) if self.recording.place.operation.is_some() => {
                Some(self.recording.done())
            }
            _ => None,
        };
        if !keeps_errors(at_end) {
            self.run.clone().roll_back().await;
            if done.is_none() {
                return Ok(());
            }
        }
        if matches!(at_end, AtEnd::Lent) {
            self.report_lent();
            return Err(Refusal::Lent);
        }
        self.commit(done).await
    }

    /// Commits the transaction, or records alone what is kept if there is none.
    async fn commit(&self, kept: Option<Kept>) -> Result<(), Refusal> {
        let recorded = kept.as_ref().map(Kept::named);
        let ended = self.run.clone().commit(kept).await;
        let telemetry = self.recording.policy.telemetry;
        match (&ended, recorded) {
            (Ok(()), Some((kept, bytes))) => {
                telemetry.recorded(kept, bytes);
                self.is_remembered();
            }
            (Err(Refusal::Unknown), Some(_)) => telemetry.recorded("unknown", None),
            _ => {}
        }
        ended
    }

    /// Answers in place of the handler.
    fn instead<R: Body>(&self, refusal: &Refusal) -> Response<RecordedBody<R>> {
        let policy = &self.recording.policy;
        let has_key = self.recording.place.operation.is_some();
        let answer = match self.repeated(refusal) {
            Some(Ok(answer)) => answer,
            Some(Err(rejection)) => refused(policy, rejection, &self.head),
            None => refused(policy, refusal.rejection(has_key), &self.head),
        };
        answer.map(|(data, trailers)| RecordedBody::whole(data, trailers))
    }

    fn report_lent(&self) {
        tracing::error!(
            layer = self.recording.policy.telemetry.layer,
            "a handler has answered while its transaction was still in use, so it is not committed; drop the `OnceTx` \
             before the handler returns, and move it into no task and no body"
        );
    }

    fn report_unused(&self) {
        let layer = self.recording.policy.telemetry.layer;
        self.recording.rules.warn_unused(layer);
    }

    /// No cooldown of the lock may hide the record from duplicates.
    fn is_remembered(&self) {
        if let Some(lock) = &self.lock {
            lock.is_remembered_in_database();
        }
    }
}

impl Ending {
    /// Repeats the record that another run has left.
    fn repeated(&self, refusal: &Refusal) -> Option<Result<Response<Whole>, Rejection>> {
        let (Refusal::Found(found), Some(operation)) = (refusal, self.recording.place.operation)
        else {
            return None;
        };
        self.is_remembered();
        let Recording { policy, rules, .. } = &self.recording;
        let record = match record_of(policy, rules, operation, found) {
            Ok(record) => record,
            Err(rejection) => return Some(Err(rejection)),
        };
        Some(
            match is_same(record.request, self.recording.fingerprint()) {
                Some(true) => Ok(repeated(policy, record, &self.head.method)),
                Some(false) => Err(Rejection::new(RejectionKind::KeyReused)),
                // The handler has not read the body as far as the first one. The next request is compared by the layer.
                None => Err(Rejection::new(RejectionKind::InFlight)),
            },
        )
    }
}

fn keeps_errors(at_end: &AtEnd) -> bool {
    matches!(at_end, AtEnd::Open { keeps_errors: true })
}

/// Rolls back where the handler has panicked, or was dropped.
impl Drop for Ending {
    fn drop(&mut self) {
        self.run.abandon();
    }
}
