//! Takes the pictures of README and of the examples' page: both lanes of the shop after a double click, and the console.

use std::fs;
use std::path::{Path, PathBuf};

use lock_tests::{ShopProcess, needs, wait};

use super::{APART, answers, console, data_until, id, on_the_page};
use crate::console::Console;

/// The picture that README shows, from the root of the repository.
const PICTURE: &str = "docs/double-click.png";
/// The picture that the examples' page shows.
const CONSOLE: &str = "docs/console.png";

fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the repository").to_owned()
}

/// Double-clicks in both lanes of a real shop, and writes a picture of the lanes.
async fn take(path: &Path) {
    let shop = ShopProcess::start();
    on_the_page(&shop, async |browser| {
        for (lane, orders) in [("plain", 2), ("locked", 1)] {
            let button = id(&format!("buy-{lane}"), "");
            browser.clicks(&button, 2, APART).await;
            answers(browser, &format!("answers-{lane}"), 2).await;
            let stock = id(&format!("stock-{lane}"), "");
            data_until(browser, &stock, "data-sold", |sold| sold == orders).await;
        }
        let lanes = browser.element("#lanes").await;
        let png = lanes.screenshot().await.expect("a picture");
        fs::write(path, png).expect("a new file");
    })
    .await;
}

/// Writes a picture of the console with the locks that it has without a Redis.
async fn take_console(path: &Path) {
    let page = Console::demo();
    console::on_the_page(&page, async |browser| {
        browser.resize(1100).await;
        wait::eventually(
            "the demo's last waiter and last lock are there",
            async || {
                browser.open(page.url()).await;
                let texts = browser.texts(&id("locks", "")).await.concat();
                texts.contains("reports") && texts.contains("imports")
            },
        )
        .await;
        let body = browser.element("body").await;
        let png = body.screenshot().await.expect("a picture");
        fs::write(path, png).expect("a new file");
    })
    .await;
}

/// Checks that a file is a PNG which is wide enough to read and light enough for a page.
fn check(path: &Path) {
    let png = fs::read(path).expect("a picture");
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "{}", path.display());
    // The first chunk begins with the width and the height.
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
    let (width, height) = (number(16), number(20));
    assert!(width >= 800 && height >= 200, "{width} × {height}");
    assert!(png.len() < 200_000, "{} bytes", png.len());
}

#[test]
fn readme_shows_the_picture_and_the_file_exists() {
    let readme = fs::read_to_string(repository().join("README.md")).expect("README");
    assert!(readme.contains(&format!("]({PICTURE})")));
    check(&repository().join(PICTURE));
}

#[test]
fn the_examples_page_shows_the_console() {
    let page = fs::read_to_string(repository().join("examples/README.md")).expect("a page");
    assert!(page.contains(&format!("](../{CONSOLE})")));
    check(&repository().join(CONSOLE));
}

#[tokio::test]
async fn the_picture_of_the_console_can_be_taken_again() {
    needs!(browser);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("picture.png");
    take_console(&path).await;
    check(&path);
}

#[tokio::test]
#[ignore = "replaces the picture of the examples' page; CONTRIBUTING.md has the command"]
async fn the_picture_of_the_console_is_replaced() {
    needs!(browser);
    take_console(&repository().join(CONSOLE)).await;
    check(&repository().join(CONSOLE));
}

#[tokio::test]
async fn the_picture_can_be_taken_again() {
    needs!(browser);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("picture.png");
    take(&path).await;
    check(&path);
}

#[tokio::test]
#[ignore = "replaces the picture of README; CONTRIBUTING.md has the command"]
async fn the_picture_of_readme_is_replaced() {
    needs!(browser);
    take(&repository().join(PICTURE)).await;
    check(&repository().join(PICTURE));
}
