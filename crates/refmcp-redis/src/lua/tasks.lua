-- Tasks: each is a hash; all of them have a sorted set of their ends, and each owner one of its tasks by position.

local TASK = 512
local RUN = 4096
-- For tasks without an end: Redis drops no task sooner.
local FOR_EVER = 10 * 365 * 24 * HOUR

local TASKS = P .. 'tasks'
local ENDS = P .. 'tasks:ends'
local OWNED = P .. 'tasks:bytes'
-- What each task costs and whose it is, for when Redis has dropped the task itself before it was swept.
local COSTS = P .. 'tasks:costs'

local function task_key(name)
  return P .. 'task:' .. name
end

local function owner_key(owner)
  return P .. 'owner:' .. owner
end

-- The bytes that a task costs. Its call is kept here, held by the run of its handler, and once more as the handler's
-- arguments. The length of a call that is not needed is nil.
local function task_cost(state, call_length)
  return TASK + state + (call_length and RUN + 3 * call_length or 0)
end

local function add_bytes(owner, bytes)
  if call('HINCRBY', OWNED, owner, int(bytes)) <= 0 then
    call('HDEL', OWNED, owner)
  end
  call('HINCRBY', TASKS, 'bytes', int(bytes))
end

local function remove_task(name)
  local kept = call('HGET', COSTS, name)
  call('ZREM', ENDS, name)
  if kept then
    local cost, owner = string.match(kept, '^(%d+):(.*)$')
    call('HDEL', COSTS, name)
    call('UNLINK', task_key(name))
    call('ZREM', owner_key(owner), name)
    add_bytes(owner, -cost)
    call('HINCRBY', TASKS, 'count', -1)
    hint('task:' .. name)
  end
end

-- Forgets tasks whose time is over, at most so many. True when that was all.
local function sweep_tasks(most)
  local over = call('ZRANGEBYSCORE', ENDS, '-inf', int(now), 'LIMIT', 0, most)
  for _, name in ipairs(over) do
    remove_task(name)
  end
  return #over < most
end

local function note_cost(name, owner, cost)
  call('HSET', COSTS, name, int(cost) .. ':' .. owner)
end

local function task_end(expires)
  return expires or now + FOR_EVER
end

-- The members of a task that is kept, or nil.
local function task(name, ...)
  local found = call('HMGET', task_key(name), 'version', 'expires', ...)
  if not found[1] then
    return nil
  end
  if found[2] and now >= tonumber(found[2]) then
    remove_task(name)
    return nil
  end
  return found
end

-- How many bytes one owner may keep: as many as are free, so that several that keep all they can leave some for others.
local function owner_bytes()
  return math.min(S.total_task_bytes - (call('HGET', TASKS, 'bytes') or 0), S.owner_task_bytes)
end
