//! A real browser: what a person sees, and real pointer events.

mod driver;

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
use driver::Driver;

pub use fantoccini;

/// A headless Chromium with one window and a fresh profile.
#[derive(Debug)]
pub struct Browser {
    client: Client,
}

impl Browser {
    /// Runs `test` with a browser of its own and ends it afterwards, however the test ends. When
    /// the test panics, a picture of the window is left in the target folder, and its path is
    /// printed.
    ///
    /// # Panics
    ///
    /// As `test` does, and when there is no browser (say [`needs!(browser)`](crate::needs) first)
    /// or it does not start.
    pub async fn session<T>(test: impl AsyncFnOnce(&Browser) -> T) -> T {
        let driver = Driver::start();
        let client = driver.session().await;
        let browser = Browser { client };

        let outcome = caught(test(&browser)).await;
        if outcome.is_err() {
            browser.leave_a_picture().await;
        }
        // Ended in order, the browser removes what it has outside its profile too; `driver` ends
        // it in any case.
        let _ = browser.client.close().await;
        drop(driver);
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// The WebDriver client, for what has no verb here.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Opens a page and waits until it has loaded.
    ///
    /// # Panics
    ///
    /// When it does not load.
    pub async fn open(&self, url: &str) {
        self.client
            .goto(url)
            .await
            .unwrap_or_else(|error| panic!("{url}: {error}"));
    }

    /// One click in the middle of the element, by pointer events.
    ///
    /// # Panics
    ///
    /// When there is no such element within [`wait::PATIENCE`], or it cannot be clicked.
    pub async fn click(&self, css: &str) {
        self.clicks(css, 1, Duration::ZERO).await;
    }

    /// Several clicks, each beginning `apart` after the one before, as a person makes them: the
    /// pointer moves there once, and the browser itself keeps the time between them.
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

    /// The element, as soon as it is there.
    ///
    /// # Panics
    ///
    /// When there is none within [`wait::PATIENCE`].
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

    /// How many elements there are at this moment.
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

    /// The text of an element that a person can read, as soon as it is there.
    ///
    /// # Panics
    ///
    /// As [`Browser::element`].
    pub async fn text(&self, css: &str) -> String {
        loop {
            match self.element(css).await.text().await {
                // Another has taken its place in the page before it was read.
                Err(error) if error.is_stale_element_reference() => {}
                text => return text.unwrap_or_else(|error| panic!("{css}: {error}")),
            }
        }
    }

    /// The texts of all such elements at this moment, of each what a person can read of it.
    ///
    /// # Panics
    ///
    /// When the browser does not answer.
    pub async fn texts(&self, css: &str) -> Vec<String> {
        // In one look, as the page may put others in their place between two.
        const SCRIPT: &str = "return [...document.querySelectorAll(arguments[0])]
            .map(element => element.checkVisibility() ? element.innerText : '')";
        let texts = self.client.execute(SCRIPT, vec![css.into()]).await;
        serde_json::from_value(texts.expect("the browser's answer")).expect("texts")
    }

    /// Waits until the texts of all such elements are what `wanted` accepts, and returns them.
    ///
    /// # Panics
    ///
    /// When they are not within [`wait::PATIENCE`].
    pub async fn texts_until(&self, css: &str, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
        let mut texts = Vec::new();
        wait::eventually(&format!("the texts of {css} are as wanted"), async || {
            texts = self.texts(css).await;
            wanted(&texts)
        })
        .await;
        texts
    }

    /// Pointer events, unlike the driver's own click, do not scroll.
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

/// `target/`, from the path of this test: `target/debug/deps/it-<hash>`.
fn pictures() -> PathBuf {
    let this = env::current_exe().unwrap_or_default();
    this.ancestors()
        .nth(3)
        .map_or_else(env::temp_dir, PathBuf::from)
}

/// The future's outcome, a panic included.
async fn caught<F: Future>(future: F) -> std::thread::Result<F::Output> {
    let mut future = pin!(future);
    future::poll_fn(|context| {
        // Nothing of the future is looked at after a panic.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}
