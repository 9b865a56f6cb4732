//! Reconcile loops.
