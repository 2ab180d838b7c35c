//! Empty: the tests of this crate check the workspace as a whole.
