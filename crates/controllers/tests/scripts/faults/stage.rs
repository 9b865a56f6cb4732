//! Lets a test play steps of a script itself and inspect the state. Main type: [`Stage`].

use crate::scripts::{
    ground::Ground,
    play::Play,
    script::Script,
    wire::{Plan, Wire},
};
use serde_json::Value;
use std::{path::Path, time::Duration};
use tokio::time::{Instant, sleep};

/// How often a real control plane is asked.
const POLL: Duration = Duration::from_millis(300);

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

/// Plays on a real control plane behind `wire`, and removes what is left over.
pub async fn real_stage<R>(
    ground: &Ground,
    wire: &Wire,
    id: &str,
    act: impl AsyncFnOnce(&mut Stage) -> R,
) -> R {
    let mut stage = Stage {
        play: Play::begun_as(ground, id).await,
        wire: wire.clone(),
    };
    let result = act(&mut stage).await;
    stage.play.end().await;
    result
}

impl Stage<'_> {
    /// Waits for what happens within this time: as long as it says where time is virtual; on a real
    /// control plane until the condition holds.
    pub async fn within(&mut self, limit: Duration, holds: impl AsyncFn(&Self) -> bool) {
        if !self.play.ground.is_real() {
            self.play(&format!("pass {}s", limit.as_secs())).await;
            return;
        }
        let deadline = Instant::now() + limit;
        while !holds(self).await && Instant::now() < deadline {
            sleep(POLL).await;
        }
    }

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
