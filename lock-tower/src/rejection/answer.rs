//! The response of a refusal: problem+json, or an HTML page for a native form.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};

use super::Rejection;
use crate::options::RefusalFormat;

/// Ready responses, for use in [`LockLayer::on_reject`](crate::LockLayer::on_reject).
impl Rejection {
    /// Makes the default response, which is `application/problem+json` (RFC 9457).
    ///
    /// It has a `Retry-After` if a retry makes sense.
    ///
    /// | member | value |
    /// | --- | --- |
    /// | `type` | the [type URI](Self::type_uri), which differs for each code |
    /// | `title`, `detail` | a few words, and a few sentences, for a person |
    /// | `status` | the [status](Self::status) |
    /// | `code` | the [code](Self::code), for a program |
    /// | `source` | the [part of the request](Self::source) that caused the refusal, if there is one |
    /// | `retry_after_ms` | [the time until a retry](Self::retry_after_millis), if a retry makes sense |
    ///
    /// A script of another origin can read the body if CORS allows it to read the response. It can
    /// read `Retry-After` only if `Access-Control-Expose-Headers` lists that header.
    #[must_use]
    pub fn problem(&self) -> Response<String> {
        self.response("application/problem+json", self.problem_json())
    }

    /// Makes a small HTML page with the same title and detail.
    ///
    /// The page loads nothing and sends nothing.
    #[must_use]
    pub fn page(&self) -> Response<String> {
        let (title, detail) = (self.title(), self.detail());
        let page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
             <h1>{title}</h1>\n<p>{detail}</p>\n</html>\n"
        );
        self.response("text/html; charset=utf-8", page)
    }

    pub(crate) fn answer(&self, format: RefusalFormat, request: &HeaderMap) -> Response<Bytes> {
        let response = match format {
            RefusalFormat::Problem => self.problem(),
            RefusalFormat::ByAccept => {
                let mut response = if prefers_html(request) {
                    self.page()
                } else {
                    self.problem()
                };
                let headers = response.headers_mut();
                headers.insert(header::VARY, HeaderValue::from_static("accept"));
                response
            }
        };
        response.map(Bytes::from)
    }

    fn response(&self, content_type: &'static str, text: String) -> Response<String> {
        let mut response = Response::new(text);
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Some(seconds) = self.retry_after_seconds() {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(link) = &self.documentation {
            headers.insert(header::LINK, link.clone());
        }
        response
    }

    /// Needs no escaping, because sources and type URIs contain neither quotes nor backslashes.
    fn problem_json(&self) -> String {
        let mut more = String::new();
        if let Some(source) = self.source() {
            more.push_str(&format!(r#","source":"{source}""#));
        }
        if let Some(millis) = self.retry_after_millis() {
            more.push_str(&format!(r#","retry_after_ms":{millis}"#));
        }
        format!(
            r#"{{"type":"{}","title":"{}","status":{},"detail":"{}","code":"{}"{more}}}"#,
            self.type_uri(),
            self.title(),
            self.status().as_u16(),
            self.detail(),
            self.code(),
        )
    }
}

/// Returns whether this client prefers HTML to JSON.
///
/// Browsers prefer HTML when they submit a form. The `*/*` of a script prefers neither.
fn prefers_html(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT).into_iter();
    let ranges = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    let ranges: Vec<(String, f32)> = ranges
        .map(|range| {
            let mut parameters = range.split(';').map(str::trim);
            let range = parameters.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parameters
                .find_map(|parameter| {
                    parameter
                        .strip_prefix("q=")
                        .or(parameter.strip_prefix("Q="))
                })
                .map_or(1.0, |quality| quality.parse().unwrap_or(0.0));
            (range, quality)
        })
        .collect();
    let of = |name: &'static str| {
        let named = ranges.iter().filter(move |(range, _)| range == name);
        named.map(|(_, quality)| *quality)
    };
    // The weight of a media type is that of the most specific range that matches. Either of the two JSON types will do.
    let any = of("*/*").next_back().unwrap_or(0.0);
    let html = of("text/html")
        .reduce(f32::max)
        .or(of("text/*").next_back());
    let json = of("application/problem+json").chain(of("application/json"));
    let json = json.reduce(f32::max).or(of("application/*").next_back());
    html.unwrap_or(any) > json.unwrap_or(any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants_a_page(accept: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
        prefers_html(&headers)
    }

    #[test]
    fn a_native_form_gets_a_page_and_a_script_a_problem() {
        for page in [
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
            "text/html",
            "TEXT/HTML; level=1; q=0.5, application/json;q=0.4",
            "text/*, */*;q=0.1",
            "*/*, application/json;q=0, application/problem+json;q=0",
        ] {
            assert!(wants_a_page(page), "{page}");
        }
        for problem in [
            "*/*",
            "application/json, text/plain, */*",
            "application/json, text/html;q=0.9",
            "text/html, application/json",
            "text/html;q=0, */*",
            "text/html;q=nonsense",
            "",
        ] {
            assert!(!wants_a_page(problem), "{problem}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }
}
