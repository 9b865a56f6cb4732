//! What a sync does, step by step.
