//! Lets a test play steps of a script itself and inspect the state. Main type: [`Stage`].

use crate::scripts::{
    ground::Ground,
    play::Play,
    script::Script,
    wire::{Plan, Wire},
};
use serde_json::Value;
use std::path::Path;

/// A script being played, with the faults of its controller.
pub struct Stage<'a> {
    pub play: Play<'a>,
    pub wire: Wire,
}

/// Plays in its own cluster and virtual time.
pub fn stage<R>(plan: Plan, act: impl AsyncFnOnce(&mut Stage) -> R) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let wire = Wire::new(plan);
        let ground = Ground::embedded(&wire).await;
        let mut stage = Stage {
            play: Play::begun(&ground).await,
            wire,
        };
        let result = act(&mut stage).await;
        drop(stage);
        ground.close().await;
        result
    })
}

impl Stage<'_> {
    /// Plays steps as written in a script file; returns their output.
    pub async fn play(&mut self, text: &str) -> Vec<String> {
        let script = Script::of(Path::new("stage"), text);
        let mut said = Vec::new();
        for step in &script.steps {
            said.extend(self.play.done(&script, step).await);
        }
        said
    }

    /// Performs one step without waiting for its effects.
    pub async fn act(&mut self, text: &str) -> Vec<String> {
        let script = Script::of(Path::new("stage"), text);
        self.play
            .step(&script.steps[0])
            .await
            .unwrap_or_else(|problem| panic!("`{text}`: {problem}"))
    }

    /// An Application by the end of its path; null if there is none.
    pub async fn app(&self, name: &str) -> Value {
        self.play
            .ground
            .find(&self.play.app_path(name))
            .await
            .unwrap_or_default()
    }

    /// The first Application.
    pub async fn first(&self) -> Value {
        self.app(&self.play.apps[0]).await
    }

    /// What the controller wrote that contains this.
    pub fn written(&self, part: &str) -> Vec<String> {
        self.wire
            .writes()
            .into_iter()
            .map(|w| format!("{} {}", w.what, w.code))
            .filter(|w| w.contains(part))
            .collect()
    }
}

/// The messages of an Application's conditions of this type.
pub fn conditions(app: &Value, kind: &str) -> Vec<String> {
    let all = app["status"]["conditions"].as_array().into_iter().flatten();
    all.filter(|c| c["type"] == kind)
        .map(|c| c["message"].as_str().unwrap_or_default().to_owned())
        .collect()
}
