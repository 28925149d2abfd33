-- task, owner, state, call, then the ttl where there is one
local name, owner, state, work, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
sweep_tasks(100)
if task(name) then
  return {'taken'}
end
local counts = call('HMGET', TASKS, 'count', 'bytes', 'position')
local count, bytes = tonumber(counts[1] or 0), tonumber(counts[2] or 0)
local cost = task_cost(#state, #work)
local owned, held = call('ZCARD', owner_key(owner)), tonumber(call('HGET', OWNED, owner) or 0)
if count >= S.tasks or owned >= S.owner_tasks or owned >= S.tasks - count
  or held + cost > owner_bytes() or bytes + cost > S.total_task_bytes then
  return {'full'}
end
-- No position is given out twice, even if Redis has lost the last ones.
local position = math.max(tonumber(counts[3] or 0) + 1, micros)
local expires = ttl and now + ttl
call('HSET', task_key(name), 'owner', owner, 'position', int(position), 'version', 1, 'state', state, 'call', work, 'cost', int(cost))
note_cost(name, owner, cost)
if expires then
  call('HSET', task_key(name), 'expires', int(expires))
  call('ZADD', ENDS, int(expires), name)
end
call('ZADD', owner_key(owner), int(position), name)
call('HSET', TASKS, 'position', int(position))
call('HINCRBY', TASKS, 'count', 1)
add_bytes(owner, cost)
local ends = task_end(expires)
for _, key in ipairs({task_key(name), owner_key(owner), TASKS, ENDS, OWNED, COSTS}) do
  keep(key, ends)
end
return {'created'}
