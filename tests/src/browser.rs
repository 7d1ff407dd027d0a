//! Drives a real browser: reads the text that a user sees and sends real pointer events.

mod driver;
mod idle;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use std::{env, fs, future};

use fantoccini::actions::{InputSource, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use fantoccini::elements::Element;
use fantoccini::{Client, Locator};

use crate::wait;
use idle::Session;

pub use fantoccini;

/// A headless Chromium with one window and without cookies.
#[derive(Debug)]
pub struct Browser {
    client: Client,
}

impl Browser {
    /// Runs `test` with a browser that no other test uses at that time.
    ///
    /// When the test panics, the session saves a picture of the window in the target folder,
    /// prints its path, and ends the browser. Otherwise the next test gets the browser, with a new window.
    ///
    /// # Panics
    ///
    /// Panics when `test` panics, when there is no browser (say [`needs!(browser)`](crate::needs)
    /// first), or when the browser does not start.
    pub async fn session<T>(test: impl AsyncFnOnce(&Browser) -> T) -> T {
        let session = Session::idle_or_new().await;
        let browser = Browser {
            client: session.client.clone(),
        };
        match caught(test(&browser)).await {
            Ok(value) => {
                session.leave_to_the_next_test().await;
                value
            }
            Err(panic) => {
                browser.leave_a_picture().await;
                session.end().await;
                resume_unwind(panic)
            }
        }
    }

    /// Returns the WebDriver client, for operations that this type does not offer.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Opens a page and waits until it has loaded.
    ///
    /// # Panics
    ///
    /// When the page does not load.
    pub async fn open(&self, url: &str) {
        self.client
            .goto(url)
            .await
            .unwrap_or_else(|error| panic!("{url}: {error}"));
    }

    /// Makes the window's page `width` pixels wide.
    ///
    /// # Panics
    ///
    /// When the browser does not answer, or has another width afterwards.
    pub async fn resize(&self, width: u32) {
        let resized = self.client.set_window_size(width, 1600).await;
        resized.expect("the browser's answer");
        wait::eventually(&format!("the page is {width} pixels wide"), async || {
            let inner = self.client.execute("return innerWidth", Vec::new()).await;
            inner.expect("the browser's answer") == width
        })
        .await;
    }

    /// Clicks once in the middle of the element, with pointer events.
    ///
    /// # Panics
    ///
    /// When no such element appears within [`wait::PATIENCE`], or the element cannot be clicked.
    pub async fn click(&self, css: &str) {
        self.clicks(css, 1, Duration::ZERO).await;
    }

    /// Clicks several times, each click `apart` after the one before.
    ///
    /// As with a person's clicks, the pointer moves there once. The browser itself keeps the time
    /// between the clicks.
    ///
    /// # Panics
    ///
    /// As [`Browser::click`].
    pub async fn clicks(&self, css: &str, count: usize, apart: Duration) {
        let element = self.element(css).await;
        self.scroll_to(&element).await;
        let button = MOUSE_BUTTON_LEFT;
        let move_there = PointerAction::MoveToElement {
            element,
            duration: None,
            x: 0.0,
            y: 0.0,
        };
        let mut mouse = MouseActions::new("mouse".to_owned()).then(move_there);
        for click in 0..count {
            if click > 0 {
                mouse = mouse.then(PointerAction::Pause { duration: apart });
            }
            mouse = mouse
                .then(PointerAction::Down { button })
                .then(PointerAction::Up { button });
        }
        self.client
            .perform_actions(mouse)
            .await
            .unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Returns the element as soon as it is there.
    ///
    /// # Panics
    ///
    /// When no such element appears within [`wait::PATIENCE`].
    pub async fn element(&self, css: &str) -> Element {
        let waiting = self
            .client
            .wait()
            .at_most(wait::PATIENCE)
            .for_element(Locator::Css(css));
        waiting
            .await
            .unwrap_or_else(|error| panic!("{css}: {error}"))
    }

    /// Counts the elements that are there at this moment.
    ///
    /// # Panics
    ///
    /// When the browser does not answer.
    pub async fn count(&self, css: &str) -> usize {
        self.client
            .find_all(Locator::Css(css))
            .await
            .expect("the browser's answer")
            .len()
    }

    /// Returns the visible text of an element as soon as the element is there.
    ///
    /// # Panics
    ///
    /// As [`Browser::element`].
    pub async fn text(&self, css: &str) -> String {
        loop {
            match self.element(css).await.text().await {
                // The page replaced the element before its text was read.
                Err(error) if error.is_stale_element_reference() => {}
                text => return text.unwrap_or_else(|error| panic!("{css}: {error}")),
            }
        }
    }

    /// Returns the visible texts of all such elements at this moment.
    ///
    /// # Panics
    ///
    /// When the browser does not answer.
    pub async fn texts(&self, css: &str) -> Vec<String> {
        // One script reads all texts, because the page may replace elements between two reads.
        const SCRIPT: &str = "return [...document.querySelectorAll(arguments[0])]
            .map(element => element.checkVisibility() ? element.innerText : '')";
        let texts = self.client.execute(SCRIPT, vec![css.into()]).await;
        serde_json::from_value(texts.expect("the browser's answer")).expect("texts")
    }

    /// Waits until `wanted` accepts the texts of all such elements, and returns them.
    ///
    /// # Panics
    ///
    /// When `wanted` does not accept them within [`wait::PATIENCE`].
    pub async fn texts_until(&self, css: &str, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
        let mut texts = Vec::new();
        wait::eventually(&format!("the texts of {css} are as wanted"), async || {
            texts = self.texts(css).await;
            wanted(&texts)
        })
        .await;
        texts
    }

    /// Scrolls to the element, because pointer events, unlike the driver's own click, do not
    /// scroll.
    async fn scroll_to(&self, element: &Element) {
        const SCRIPT: &str =
            "arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })";
        let element = serde_json::to_value(element).expect("an element's reference");
        self.client
            .execute(SCRIPT, vec![element])
            .await
            .expect("an element on the page");
    }

    async fn leave_a_picture(&self) {
        let name = std::thread::current()
            .name()
            .unwrap_or("browser")
            .replace("::", "-");
        let path = pictures().join(format!("{name}.png"));
        match self.client.screenshot().await {
            Ok(png) if fs::write(&path, &png).is_ok() => eprintln!("see {}", path.display()),
            _ => eprintln!("no picture of the window could be taken"),
        }
    }
}

/// Derives `target/` from the path of this test: `target/debug/deps/it-<hash>`.
fn pictures() -> PathBuf {
    let this = env::current_exe().unwrap_or_default();
    this.ancestors()
        .nth(3)
        .map_or_else(env::temp_dir, PathBuf::from)
}

/// Returns the future's outcome, including a panic.
async fn caught<F: Future>(future: F) -> std::thread::Result<F::Output> {
    let mut future = pin!(future);
    future::poll_fn(|context| {
        // The future is not polled or inspected after a panic.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}
