-- idle, revision, facts, then the principal where there is one
local idle, revision, facts, principal = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local cost = SESSION + #(principal or '') + #revision + #facts
if cost > S.session_bytes or (sum() + cost > S.total_bytes and not reclaim(cost)) then
  return {'full'}
end
if call('ZCARD', P .. 'sessions') >= S.sessions then
  sweep_sessions(1000)
end
if find(KEYS[1]) then
  return {'taken'}
end
if call('ZCARD', P .. 'sessions') >= S.sessions then
  return {'full'}
end
local session = {
  key = KEYS[1], name = string.sub(KEYS[1], #P + 2, -2),
  expires = 0, idle = idle, held = 0, saved_held = 0, opened = 0, created = now, logs = {}, written = {},
}
if not take(session, cost) then
  return {'full'}
end
sessions[KEYS[1]] = session
call('HSET', KEYS[1], 'idle', int(idle), 'opened', 0, 'created', int(now), 'version', 1, 'revision', revision, 'facts', facts)
if principal then
  call('HSET', KEYS[1], 'principal', principal)
end
touch(session)
return {'created'}
