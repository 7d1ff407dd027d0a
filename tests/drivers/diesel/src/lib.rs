//! Its tests are all that this package has.
