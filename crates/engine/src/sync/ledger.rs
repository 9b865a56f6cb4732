//! [`Progress`] opened for writing: finds results by step without searching the list.

use super::{
    progress::{LastWrite, OperationPhase, Progress, ResourceResult, ResultCode},
    step::Step,
};
use jiff::Timestamp;
use std::collections::HashMap;
use tiphys_apimachinery::Object;

pub(super) struct Ledger {
    pub progress: Progress,
    /// By the id of the step.
    index: HashMap<String, usize>,
}

impl Ledger {
    /// Notes about another operation are dropped.
    pub fn open(mut progress: Progress, operation_id: &str) -> Self {
        if progress.notes.op != operation_id {
            progress = Progress::from_results(progress.results, operation_id);
        }
        let index = progress
            .results
            .iter()
            .enumerate()
            .map(|(i, r)| (r.step_key().to_string(), i))
            .collect();
        Self { progress, index }
    }

    pub fn result(&self, step: &Step) -> Option<&ResourceResult> {
        self.index.get(&step.id).map(|i| &self.progress.results[*i])
    }

    pub fn status(&self, step: &Step) -> Option<ResultCode> {
        self.result(step)?.status
    }

    pub fn phase(&self, step: &Step) -> Option<OperationPhase> {
        self.result(step)?.hook_phase
    }

    pub fn message(&self, step: &Step) -> &str {
        self.result(step).map_or("", |r| r.message.as_str())
    }

    /// Whether the step's object is still running.
    pub fn running(&self, step: &Step) -> bool {
        self.phase(step) == Some(OperationPhase::Running) && !step.is_left_alone()
    }

    pub fn completed(&self, step: &Step) -> bool {
        self.phase(step).is_some_and(OperationPhase::completed)
    }

    pub fn unsuccessful(&self, step: &Step) -> bool {
        matches!(
            self.phase(step),
            Some(OperationPhase::Failed | OperationPhase::Error)
        )
    }

    /// Records a result; an empty message keeps the previous one.
    pub fn set(
        &mut self,
        step: &Step,
        status: Option<ResultCode>,
        phase: OperationPhase,
        message: &str,
    ) {
        self.write(step, status, Some(phase), message);
    }

    /// Records a result for a step that never started.
    pub fn set_invalid(&mut self, step: &Step, message: &str) {
        self.write(step, Some(ResultCode::SyncFailed), None, message);
    }

    /// Records a new phase and message; the result of the write stays.
    pub fn set_phase(&mut self, step: &Step, phase: OperationPhase, message: &str) {
        self.write(step, self.status(step), Some(phase), message);
    }

    fn write(
        &mut self,
        step: &Step,
        status: Option<ResultCode>,
        phase: Option<OperationPhase>,
        message: &str,
    ) {
        let results = &mut self.progress.results;
        let index = *self.index.entry(step.id.clone()).or_insert_with(|| {
            results.push(ResourceResult {
                group: step.gvk.group.clone(),
                version: step.gvk.version.clone(),
                kind: step.gvk.kind.clone(),
                namespace: step.result_namespace.clone(),
                name: step.key.name.clone(),
                hook_type: step.is_hook().then_some(step.phase),
                sync_phase: Some(step.phase),
                images: step.images.clone(),
                ..ResourceResult::default()
            });
            results.len() - 1
        });
        let result = &mut results[index];
        result.status = status;
        result.hook_phase = phase;
        if !message.is_empty() {
            message.clone_into(&mut result.message);
        }
    }

    pub fn mark(&self, step: &Step) -> Option<&LastWrite> {
        self.progress.notes.marks.get(&step.id)
    }

    /// Whether an object of the step could not be deleted or released.
    pub fn is_refused(&self, step: &Step) -> bool {
        self.mark(step).is_some_and(|mark| mark.refused)
    }

    pub fn mark_mut(&mut self, step: &Step) -> &mut LastWrite {
        self.progress
            .notes
            .marks
            .entry(step.id.clone())
            .or_default()
    }

    /// The last write to the object with this UID; one about another object is replaced.
    pub fn mark_of(&mut self, step: &Step, uid: &str, now: Timestamp) -> &mut LastWrite {
        let mark = self.mark_mut(step);
        if mark.uid != uid {
            *mark = LastWrite {
                uid: uid.to_owned(),
                ..LastWrite::default()
            };
        }
        mark.at = now.as_millisecond();
        mark
    }

    /// Remembers the object that the API server returned.
    pub fn saw(&mut self, step: &Step, live: Option<&Object>, now: Timestamp) {
        *self.mark_mut(step) = LastWrite {
            uid: live.map(|o| o.uid().to_owned()).unwrap_or_default(),
            version: live.map_or(0, version),
            at: now.as_millisecond(),
            ..LastWrite::default()
        };
    }
}

/// The resourceVersion as a number, which grows with every write; 0 if it is not a number.
pub(super) fn version(object: &Object) -> u64 {
    object.resource_version().parse().unwrap_or(0)
}
