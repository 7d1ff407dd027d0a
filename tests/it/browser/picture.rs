//! Takes the picture at the top of README: both lanes of the shop after a double click.

use std::fs;
use std::path::{Path, PathBuf};

use lock_tests::{ShopProcess, needs};

use super::{APART, answers, data_until, id, on_the_page};

/// The picture that README shows, from the root of the repository.
const PICTURE: &str = "docs/double-click.png";

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
