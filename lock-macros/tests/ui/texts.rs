//! The errors word for word.

use std::{
    io::{Write as _, stderr},
    process::Command,
};

use trybuild::TestCases;

/// The compiler whose words the cases in `compiler` hold. Others say the same a little differently.
const COMPILER: &str = "1.95.0";

pub(crate) fn check() {
    let cases = TestCases::new();
    cases.compile_fail("tests/ui/macros/*.rs");
    let compiler = version();
    if compiler == COMPILER {
        cases.compile_fail("tests/ui/compiler/*.rs");
    } else {
        // Not through `eprintln!`, which a passing test does not show.
        let _ = writeln!(
            stderr(),
            "the compiler's own words were not compared: they are those of Rust {COMPILER}, and this \
             is {compiler}; that each misuse is one error at its place was"
        );
    }
}

fn version() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .arg("--version")
        .output()
        .expect("the compiler can be asked");
    let text = String::from_utf8(output.stdout).expect("a version is text");
    let version = text.split_whitespace().nth(1);
    version.expect("`rustc <version> …`").to_owned()
}
