-- The globals of a run, made anew for each. What can run long in C, or would call Lua from Rust, is written here instead, where every
-- instruction is counted. `raw` are Rust functions that answer true and results, or false and a message. Returns the maker of an environment.
local raw, max_depth = ...
local error, next, pcall, select, tostring, type, unpack = error, next, pcall, select, tostring, type, unpack
local create, resume = coroutine.create, coroutine.resume
local floor, fmod = math.floor, math.fmod

-- A tail call: level 2 of the error is who called the library function.
local function pass(ok, ...)
  if ok then return ... end
  error((...), 2)
end

local function counted(f)
  return function(...) return pass(f(...)) end
end

local number_text = counted(raw.number_text)

local function text(...)
  if type((...)) == "number" then return number_text((...)) end
  return tostring(...)
end

-- A limit that was reached cannot be caught: it is raised again, as it is, up to the top.
local function caught(ok, ...)
  if ok then return true, ... end
  local is_limit, value = raw.caught((...))
  if is_limit then error(value, 0) end
  return false, value
end

-- The handler runs after `f` has ended: as LuaJIT does it, it would run inside the hook that stops `f`, where nothing is counted.
local function handled(handler, ok, ...)
  if ok then return true, ... end
  local _, result = caught(pcall(handler, ...))
  return false, result
end

local function argument(n, name, what, value)
  error("bad argument #" .. n .. " to " .. name .. " (" .. what .. " expected, got " .. type(value) .. ")", 3)
end

local function open_coroutine()
  -- Each resume nests on the machine's stack, which is ours to guard.
  local depth = 0
  local function leave(ok, ...)
    depth = depth - 1
    return caught(ok, ...)
  end
  local function guarded(co, ...)
    if depth >= max_depth then return false, "stack overflow" end
    depth = depth + 1
    return leave(resume(co, ...))
  end
  local function unwrap(ok, ...)
    if ok then return ... end
    error((...), 0)
  end
  return {
    create = create,
    resume = guarded,
    running = coroutine.running,
    status = coroutine.status,
    yield = coroutine.yield,
    wrap = function(f)
      local co = create(f)
      return function(...) return unwrap(guarded(co, ...)) end
    end,
  }
end

local function merge(from, to, low, middle, high, less)
  local left, right = low, middle + 1
  for i = low, high do
    if right > high or (left <= middle and not less(from[right], from[left])) then
      to[i] = from[left]
      left = left + 1
    else
      to[i] = from[right]
      right = right + 1
    end
  end
end

local function ascending(a, b) return a < b end

local function sort(t, less)
  if type(t) ~= "table" then argument(1, "sort", "table", t) end
  local n, from, to, width = #t, t, {}, 1
  while width < n do
    for low = 1, n, 2 * width do
      local middle, high = low + width - 1, low + 2 * width - 1
      if middle > n then middle = n end
      if high > n then high = n end
      merge(from, to, low, middle, high, less or ascending)
    end
    from, to, width = to, (from == t and {} or from), 2 * width
  end
  if from ~= t then
    for i = 1, n do t[i] = from[i] end
  end
end

local function insert(t, ...)
  if type(t) ~= "table" then argument(1, "insert", "table", t) end
  local n, position, value = #t, ...
  if select("#", ...) == 1 then
    t[n + 1] = position
    return
  end
  if type(position) ~= "number" then argument(2, "insert", "number", position) end
  for i = n, position, -1 do t[i + 1] = t[i] end
  t[position] = value
end

local function remove(t, position)
  if type(t) ~= "table" then argument(1, "remove", "table", t) end
  local n = #t
  position = position or n
  if position < 1 or position > n then return nil end
  local value = t[position]
  for i = position, n do t[i] = t[i + 1] end
  return value
end

local function maxn(t)
  local largest = 0
  for key in next, t do
    if type(key) == "number" and key > largest then largest = key end
  end
  return largest
end

local function open_table()
  return {
    concat = counted(raw.concat), getn = function(t) return #t end, insert = insert, maxn = maxn, remove = remove, sort = sort,
  }
end

local match_at = counted(raw.match_at)

-- With a table or a function as replacement; strings are replaced in Rust.
local function replace(s, pattern, with, limit)
  local out, count, at, anchored = {}, 0, 1, s.sub(pattern, 1, 1) == "^"
  local function put(from, to, first, ...)
    out[#out + 1] = s:sub(at, from - 1)
    local whole, new = s:sub(from, to), nil
    if type(with) == "table" then new = with[first] else new = with(first, ...) end
    out[#out + 1] = new and text(new) or whole
    count = count + 1
    at = to + 1
    return from, to
  end
  local function step(from, ...)
    if from then return put(from, ...) end
  end
  while count < limit and at <= #s + 1 do
    local from, to = step(match_at(s, pattern, at))
    if not from then break end
    if to < from then
      out[#out + 1] = s:sub(at, at)
      at = at + 1
    end
    if anchored then break end
  end
  out[#out + 1] = s:sub(at)
  return raw.joined(out), count
end

local gsub_string = counted(raw.gsub)

local function gsub(s, pattern, with, limit)
  local kind = type(with)
  if kind == "string" or kind == "number" then return gsub_string(s, pattern, with, limit) end
  if kind ~= "table" and kind ~= "function" then argument(3, "gsub", "string, table or function", with) end
  if type(s) ~= "string" and type(s) ~= "number" then argument(1, "gsub", "string", s) end
  return replace(text(s), text(pattern), with, limit or math.huge)
end

local function gmatch(s, pattern)
  if type(s) ~= "string" and type(s) ~= "number" then argument(1, "gmatch", "string", s) end
  local at = 1
  local function step(from, to, ...)
    if not from then return nil end
    at = to < from and from + 1 or to + 1
    return ...
  end
  s = text(s)
  return function()
    if at > #s + 1 then return nil end
    return step(match_at(s, pattern, at))
  end
end

local format_raw = counted(raw.format)

local function format(pattern, ...)
  local n, values = select("#", ...), { ... }
  for i = 1, n do
    local kind = type(values[i])
    if kind ~= "string" and kind ~= "number" then values[i] = tostring(values[i]) end
  end
  return format_raw(pattern, unpack(values, 1, n))
end

local function open_string()
  local string = { format = format, gmatch = gmatch, gsub = gsub }
  for _, name in next, { "byte", "char", "find", "len", "lower", "match", "rep", "reverse", "sub", "upper" } do
    string[name] = counted(raw[name])
  end
  return string
end

local functions = {
  "abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "deg", "exp", "floor", "fmod", "frexp", "huge", "ldexp", "log", "log10",
  "max", "min", "modf", "pi", "pow", "rad", "sin", "sinh", "sqrt", "tan", "tanh",
}

local function open_math()
  local copy, seed = { mod = fmod }, 42
  for _, name in next, functions do copy[name] = math[name] end
  -- Go's largest number, which is printed with all its digits.
  copy.huge = 1.7976931348623157e308
  copy.randomseed = function(x) seed = floor(x) % 2147483646 + 1 end
  -- The same sequence in every run: what a script answers must not depend on chance.
  copy.random = function(low, high)
    seed = seed * 16807 % 2147483647
    local share = (seed - 1) / 2147483646
    if not low then return share end
    if not high then low, high = 1, low end
    return low + floor(share * (high - low + 1))
  end
  return copy
end

local plain = {
  "error", "getmetatable", "ipairs", "next", "pairs", "rawequal", "rawget", "rawset", "select", "setmetatable", "type", "unpack",
}

local function open_base(env)
  for _, name in next, plain do env[name] = _G[name] end
  env._G, env._VERSION = env, "Lua 5.1"
  env.tonumber, env.tostring = counted(raw.tonumber), text
  env.pcall = function(f, ...) return caught(pcall(f, ...)) end
  env.xpcall = function(f, handler) return handled(handler, caught(pcall(f))) end
  env.assert = function(value, message, ...)
    if value then return value, message, ... end
    error(message or "assertion failed!", 2)
  end
  env.loadstring = function(text, name) return pass(raw.load(env, text, name)) end
  env.load = function(read, name)
    local parts = {}
    for piece in read do
      if piece == "" then break end
      parts[#parts + 1] = piece
    end
    return pass(raw.load(env, raw.joined(parts), name))
  end
  env.print = function() end
  env.collectgarbage = function() return 0 end
end

return function(open)
  local env = {}
  open_base(env)
  env.table = open_table()
  env.os = { time = counted(raw.time), date = counted(raw.date) }
  local modules = { os = env.os, table = env.table }
  if open then
    env.coroutine, env.math, env.string = open_coroutine(), open_math(), open_string()
    modules.coroutine, modules.math, modules.string = env.coroutine, env.math, env.string
  end
  env.require = function(name)
    return modules[name] or error("module " .. tostring(name) .. " not found", 2)
  end
  return env
end
