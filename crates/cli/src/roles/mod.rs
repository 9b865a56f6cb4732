//! The roles of the program: what runs until it is stopped.

pub mod page;
pub mod up;
