//! A thread's virtual machine: LuaJIT without its compiler, with a hook that counts instructions.
//!
//! Main function: [`run`]. A machine on which a limit was reached is discarded; others are reused
//! with fresh globals.

use crate::{
    Limit, Limits, LuaError, Returned, Run,
    chunk::{compile, message},
    convert, library,
    meter::Meter,
};
use mlua::{
    Error, Function, HookTriggers, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value,
    VmState,
};
use std::{cell::RefCell, collections::HashMap, rc::Rc};

/// Instructions between two calls of the hook. A single instruction can join two long strings, so
/// this must be small.
const HOOK_EVERY: u32 = 32;
/// Maximum number of cached compiled scripts; there are rarely more than a few.
const SCRIPTS: usize = 256;
/// Memory in use after earlier runs at which garbage is collected.
const GARBAGE: usize = 4 << 20;

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Runs a script and returns the steps it took, too.
pub(crate) fn run(run: &Run<'_>, limits: &Limits) -> (Result<Returned, LuaError>, u64) {
    WORKER.with_borrow_mut(|slot| {
        let worker = slot.take().map_or_else(|| Worker::new(limits), Ok);
        let mut worker = match worker {
            Ok(worker) => worker,
            Err(e) => return (Err(LuaError::Script(message(&e))), 0),
        };
        let result = worker.run(run, limits);
        // Reaching the memory or time limit counts as using all steps.
        let left = if matches!(result, Err(LuaError::Limit(_))) {
            0
        } else {
            worker.meter.steps_left()
        };
        let used = limits.steps.saturating_sub(left);
        if !matches!(result, Err(LuaError::Limit(_))) {
            *slot = Some(worker);
        }
        (result, used)
    })
}

struct Worker {
    lua: Lua,
    meter: Rc<Meter>,
    /// Creates the globals of a run.
    environment: Function,
    scripts: HashMap<Box<str>, Function>,
}

impl Worker {
    fn new(limits: &Limits) -> mlua::Result<Self> {
        let libraries = StdLib::MATH | StdLib::JIT;
        // Keep Lua's own `pcall`: mlua's version would nest on the native stack.
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        // Compiled code does not call the hook.
        lua.load("jit.off() jit.flush()").exec()?;
        let meter = Rc::new(Meter::new(limits.clock));
        let environment = library::environment(&lua, &meter)?;
        let counter = meter.clone();
        lua.set_global_hook(
            HookTriggers::new().every_nth_instruction(HOOK_EVERY),
            move |lua, _| {
                if counter.is_leaving(HOOK_EVERY) {
                    return Ok(VmState::Continue);
                }
                counter
                    .charge(u64::from(HOOK_EVERY))
                    .and_then(|()| counter.look())
                    .map_err(Error::external)?;
                counter
                    .check_memory(lua.used_memory())
                    .map_err(Error::external)?;
                Ok(VmState::Continue)
            },
        )?;
        Ok(Self {
            lua,
            meter,
            environment,
            scripts: HashMap::new(),
        })
    }

    fn run(&mut self, run: &Run<'_>, limits: &Limits) -> Result<Returned, LuaError> {
        if self.lua.used_memory() > GARBAGE {
            self.scripts.clear();
            self.lua.gc_collect().map_err(|e| self.failure(&e))?;
        }
        self.meter.start(limits);
        self.lua
            .set_memory_limit(limits.memory)
            .map_err(|e| self.failure(&e))?;
        let result = self.call(run);
        // A limit that was reached is the result, even if the script caught the error.
        match (self.meter.reached(), result) {
            (Some(limit), _) => Err(LuaError::Limit(limit)),
            (None, Ok(returned)) => Ok(returned),
            (None, Err(error)) => Err(self.failure(&error)),
        }
    }

    fn call(&mut self, run: &Run<'_>) -> mlua::Result<Returned> {
        let script = self.compiled(run.script)?;
        let globals: Table = self.environment.call(run.open_libs)?;
        let strings = match globals.raw_get::<Option<Table>>("string")? {
            Some(functions) => Some(self.lua.create_table_from([("__index", functions)])?),
            None => None,
        };
        self.lua.set_type_metatable::<LuaString>(strings);
        let parameters = self
            .lua
            .create_table_from(run.parameters.iter().map(|(k, v)| (k.as_str(), v.as_str())))?;
        globals.raw_set("actionParams", parameters)?;
        globals.raw_set("obj", convert::to_lua(&self.lua, run.object)?)?;
        script.set_environment(globals)?;
        let values: MultiValue = script.call(())?;
        convert::returned(
            values.into_iter().next_back().unwrap_or(Value::Nil),
            &self.meter,
        )
    }

    fn compiled(&mut self, script: &str) -> mlua::Result<Function> {
        if let Some(function) = self.scripts.get(script) {
            return Ok(function.clone());
        }
        let function = compile(&self.lua, script.as_bytes(), "<string>", None)?;
        if self.scripts.len() >= SCRIPTS {
            self.scripts.clear();
        }
        self.scripts.insert(script.into(), function.clone());
        Ok(function)
    }

    fn failure(&self, error: &Error) -> LuaError {
        match error {
            Error::MemoryError(_) => LuaError::Limit(self.meter.reach(Limit::Memory)),
            other => LuaError::Script(message(other)),
        }
    }
}
