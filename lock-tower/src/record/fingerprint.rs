//! The digest that distinguishes a repeated request from another one under the same key.

use http::Method;
use http::header::RANGE;
use http::request::Parts;
use sha2::{Digest, Sha256};

use crate::key::canonical_uri;

/// The digest of a request, and how much of its body is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprinted {
    pub(crate) digest: [u8; 32],
    /// The number of bytes of the body that the handler had read when it answered.
    pub(crate) read: u64,
    /// The handler had read the body to its end.
    pub(crate) ended: bool,
}

/// Begins the digest of a request with its method, path and query.
///
/// Headers are not in it, because a client may repeat a request with other ones. The range of a GET is, because the answer
/// is that part.
pub(crate) fn digest_of_head(request: &Parts) -> Sha256 {
    let (path, query) = canonical_uri(request);
    let mut digest = Sha256::new();
    // The handler of GET serves HEAD too.
    let method = match &request.method {
        &Method::HEAD => &Method::GET,
        method => method,
    };
    for field in [method.as_str(), &path, query.unwrap_or_default()] {
        digest.update((field.len() as u64).to_be_bytes());
        digest.update(field);
    }
    let range = request.headers.get(RANGE).filter(|_| method == Method::GET);
    digest.update([u8::from(query.is_some()) | u8::from(range.is_some()) << 1]);
    if let Some(range) = range {
        digest.update((range.len() as u64).to_be_bytes());
        digest.update(range);
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn digest(method: Method, uri: &str) -> Vec<u8> {
        let request = Request::builder().method(method).uri(uri);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        digest_of_head(&parts).finalize().to_vec()
    }

    #[test]
    fn method_path_and_query_make_the_digest_and_equal_spellings_are_equal() {
        let post = |uri| digest(Method::POST, uri);
        assert_eq!(post("/users/%31?a=1"), post("/users/1?a=1"));
        let different = [
            post("/users/1?a=1"),
            digest(Method::PATCH, "/users/1?a=1"),
            post("/users/1"),
            post("/users/1?"),
            post("/users/1?a=%31"),
            post("/users/1%3Fa=1"),
            post("/users/2?a=1"),
        ];
        let distinct: std::collections::HashSet<_> = different.iter().collect();
        assert_eq!(distinct.len(), different.len());
    }
}
