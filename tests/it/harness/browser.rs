use std::net::SocketAddr;
use std::time::Duration;

use lock_tests::{Browser, needs};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A page whose button records each click.
const PAGE: &str = "<!doctype html><title>t</title><div style='height:3000px'></div>
    <button>order</button><ol></ol><script>
    let last = 0;
    document.querySelector('button').addEventListener('click', event => {
        const item = document.createElement('li');
        item.textContent = `${event.isTrusted} ${last ? event.timeStamp - last : 0}`;
        last = event.timeStamp;
        document.querySelector('ol').append(item);
    });
    </script>";

async fn serve_page() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("a bound listener");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close";
                let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{PAGE}", PAGE.len());
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn two_clicks_are_real_and_as_far_apart_as_asked() {
    needs!(browser);
    let address = serve_page().await;
    let texts = Browser::session(async |browser| {
        browser.open(&format!("http://{address}/")).await;
        browser
            .clicks("button", 2, Duration::from_millis(150))
            .await;
        browser.texts_until("li", |texts| texts.len() == 2).await
    })
    .await;
    let apart: f64 = texts[1]
        .strip_prefix("true ")
        .expect("a real click")
        .parse()
        .expect("ms");
    assert!(texts[0].starts_with("true "), "{texts:?}");
    // A click that comes too early would make the test prove less. A late click is caused by the
    // machine.
    assert!(apart >= 145.0, "{apart} ms");
}

#[tokio::test]
async fn a_panic_of_a_test_passes_through_its_browser() {
    needs!(browser);
    let address = serve_page().await;
    let session = tokio::spawn(Browser::session(async move |browser: &Browser| {
        browser.open(&format!("http://{address}/")).await;
        assert_eq!(browser.text("button").await, "order");
        std::panic::panic_any("on purpose");
    }));
    let panic = session
        .await
        .expect_err("the test has panicked")
        .into_panic();
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
}

#[tokio::test]
async fn a_browser_keeps_nothing_of_one_test_for_the_next() {
    needs!(browser);
    let address = serve_page().await;
    let url = format!("http://{address}/");
    Browser::session(async |browser| {
        browser.open(&url).await;
        // A window keeps its name when it opens another page.
        let leaves = "window.name = 'left'; document.cookie = 'left=1'";
        let left = browser.client().execute(leaves, Vec::new()).await;
        left.expect("the browser's answer");
    })
    .await;
    let found = Browser::session(async |browser| {
        browser.open(&url).await;
        let finds = "return window.name + document.cookie";
        let found = browser.client().execute(finds, Vec::new()).await;
        found.expect("the browser's answer")
    })
    .await;
    assert_eq!(found, "");
}
