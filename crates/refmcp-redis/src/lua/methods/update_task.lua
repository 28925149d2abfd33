-- task, version, state, then its call where it changes; an empty one is not needed any more
local name, state, work = ARGV[1], ARGV[3], ARGV[4]
sweep_tasks(100)
local most = owner_bytes()
local found = task(name, 'owner', 'cost')
if not found then
  return {'unknown'}
elseif found[1] ~= ARGV[2] then
  return {'conflict', tonumber(found[1]), call('HGET', task_key(name), 'state')}
end
local length = work and #work or call('HSTRLEN', task_key(name), 'call')
if (work and work == '') or (not work and call('HEXISTS', task_key(name), 'call') == 0) then
  length = nil
end
local owner, before, cost = found[3], tonumber(found[4]), task_cost(#state, length)
local held = tonumber(call('HGET', OWNED, owner) or 0) - before + cost
local all = tonumber(call('HGET', TASKS, 'bytes') or 0) - before + cost
if cost > before and (held > most or all > S.total_task_bytes) then
  return {'full'}
end
add_bytes(owner, cost - before)
local version = int(tonumber(found[1]) + 1)
call('HSET', task_key(name), 'version', version, 'state', state, 'cost', int(cost))
note_cost(name, owner, cost)
if work == '' then
  call('HDEL', task_key(name), 'call')
elseif work then
  call('HSET', task_key(name), 'call', work)
end
hint('task:' .. name)
return {'updated', tonumber(version)}
