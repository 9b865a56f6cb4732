//! Expressions that select devices. Main function: [`check`].
//!
//! They are compiled but never run, because devices are not allocated here. Their cost is not
//! estimated, and expressions that bind names of their own (`cel.bind`) are accepted unchecked.

use super::admission::object;
use super::types::Type;
use super::{Env, Program};
use std::sync::OnceLock;

fn env() -> &'static Env {
    static ENV: OnceLock<Env> = OnceLock::new();
    ENV.get_or_init(|| {
        let by_domain = |value: Type| Type::map(Type::String, Type::map(Type::String, value));
        let fields = [
            ("driver", Type::String),
            ("allowMultipleAllocations", Type::Bool),
            ("attributes", by_domain(Type::Dyn)),
            ("capacity", by_domain(Type::Opaque("kubernetes.Quantity"))),
        ];
        Env {
            vars: [("device".to_owned(), object("kubernetes.DRADevice", &fields))].into(),
            patches: false,
        }
    })
}

/// The real server's error for an expression.
pub fn check(source: &str) -> Option<String> {
    if source.contains("cel.bind(") {
        return None;
    }
    match Program::compile(env(), source) {
        Err(why) => Some(format!("compilation failed: {why}")),
        Ok(program) if matches!(program.ty, Type::Bool | Type::Dyn) => None,
        Ok(program) => Some(format!(
            "must evaluate to bool or the unknown type, not {}",
            program.ty.runtime_name()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_device_has_a_driver_attributes_and_capacities() {
        for fits in [
            "device.driver == 'gpu.example.com'",
            "device.attributes['gpu.example.com'].model == 'a' && device.capacity['gpu.example.com'].memory.compareTo(quantity('1Gi')) >= 0",
        ] {
            assert_eq!(check(fits), None, "{fits}");
        }
        assert_eq!(
            check("device.driver").as_deref(),
            Some("must evaluate to bool or the unknown type, not string")
        );
        let unknown = "compilation failed: ERROR: <input>:1:1: undeclared reference to 'Bogus' (in container '')\n | Bogus\n | ^";
        assert_eq!(check("Bogus").as_deref(), Some(unknown));
    }
}
