use super::*;
use crate::ErrorKind;

#[test]
fn settings_out_of_bounds_are_refused() {
    let builder = LockManager::builder("memory:").default_ttl(Duration::ZERO);
    assert_eq!(
        builder.connect_lazy().unwrap_err().kind(),
        ErrorKind::Invalid
    );
    let builder = LockManager::builder("memory:").operation_timeout(Duration::ZERO);
    assert_eq!(
        builder.connect_lazy().unwrap_err().kind(),
        ErrorKind::Invalid
    );
}
