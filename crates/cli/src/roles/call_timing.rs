//! Whether a role measures how long its calls take. Main type: [`CallTimingArgs`].

use clap::Args;

#[derive(Args, Debug)]
pub struct CallTimingArgs {
    /// Measure how long calls take: grpc_server_handling_seconds
    #[arg(
        long,
        value_parser = clap::builder::BoolishValueParser::new(),
        env = "ARGOCD_ENABLE_GRPC_TIME_HISTOGRAM",
        hide = true
    )]
    grpc_time_histogram: bool,
}

impl CallTimingArgs {
    pub fn is_on(&self) -> bool {
        self.grpc_time_histogram
    }
}
