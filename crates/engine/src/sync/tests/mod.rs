//! Tests of the sync engine.
