//! Nothing of its own: the tests of this crate look at the whole house.
