//! Implements the service as generated code would: one unary method with text messages.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, Response};
use lock_tower::LockContext;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Code, Status};

/// Creates orders. The bank takes some time for each.
#[derive(Clone)]
pub(crate) struct Orders {
    time_of_the_bank: Duration,
}

impl Orders {
    pub(crate) fn new(time_of_the_bank: Duration) -> Self {
        Self { time_of_the_bank }
    }

    async fn create(
        self,
        request: tonic::Request<String>,
    ) -> Result<tonic::Response<String>, Status> {
        let lock = request.extensions().get::<LockContext>();
        // Without a fencing token no order is written: outside the layer, and in its shadow mode.
        let fence = lock.and_then(LockContext::fencing_token);
        let fence = fence.ok_or_else(|| Status::internal("the order runs without a lock"))?;
        tokio::time::sleep(self.time_of_the_bank).await;
        let order = format!("{} under fencing token {fence}", request.get_ref());
        Ok(tonic::Response::new(order))
    }
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl UnaryService<String> for Orders {
    type Response = String;
    type Future = BoxFuture<Result<tonic::Response<String>, Status>>;

    fn call(&mut self, request: tonic::Request<String>) -> Self::Future {
        Box::pin(self.clone().create(request))
    }
}

impl tower::Service<Request<Body>> for Orders {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let orders = self.clone();
        Box::pin(async move {
            Ok(match request.uri().path() {
                "/shop.Orders/Create" => Grpc::new(Text).unary(orders, request).await,
                _ => Status::new(Code::Unimplemented, "no such method").into_http(),
            })
        })
    }
}

impl NamedService for Orders {
    const NAME: &'static str = "shop.Orders";
}

/// The codec for text. Generated code has protobuf in its place.
#[derive(Clone, Copy)]
struct Text;

impl Codec for Text {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Text {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, text: String, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put_slice(buffer, text.as_bytes());
        Ok(())
    }
}

impl Decoder for Text {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let length = bytes::Buf::remaining(buffer);
        let text: Bytes = bytes::Buf::copy_to_bytes(buffer, length);
        let text = String::from_utf8(text.to_vec());
        Ok(Some(
            text.map_err(|_| Status::invalid_argument("not text"))?,
        ))
    }
}
